/* Calls a function that no library has. */
double a_function_that_nobody_defines(void);
#define PLUGIN_NAME "unresolved_symbol"
#define TABLE_RATE calling_rate
#include <mulligan/schedule.h>
static mlg_error calling_rate(void* instance, const mlg_progress* progress, double base_lr, mlg_rate* out) {
  (void)instance;
  (void)progress;
  out->lr = base_lr * a_function_that_nobody_defines();
  return 0;
}
#include "schedule_table.h"
