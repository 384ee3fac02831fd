/* The rate halves in step 3. Writes the whole of the mlg_rate that it knows. */
#include <mulligan/schedule.h>

#include "old_plugin.h"

_Static_assert(sizeof(mlg_rate) == 16, "as released");

static mlg_error rate(void* instance, const mlg_progress* progress, double base_lr, mlg_rate* out) {
  mlg_rate result;
  (void)instance;
  memset(&result, 0, sizeof result);
  result.lr = progress->step < 2 ? base_lr : base_lr / 2;
  memcpy(out, &result, sizeof result);
  return NULL;
}

static const mlg_schedule_table table = {HEADER(mlg_schedule_table, MLG_SCHEDULE, "old_schedule", NULL, 0),
                                         create, destroy, rate};
EXPORTED const char mlg_abi_1_schedule_old_schedule = 1;
EXPORTED const mlg_plugin_header* mlg_plugin(void) {
  return &table.header;
}
