/* Gradient descent: master -= lr * gradient. */
#include <mulligan/optimizer.h>

#include "old_plugin.h"

_Static_assert(sizeof(mlg_step) == 16 && sizeof(mlg_optimizer_table) == 112, "as released");

static mlg_error run(const mlg_launch* launch) {
  const float* gradient = launch->arguments[0].data;
  float* master = launch->arguments[1].data;
  const float lr = *(const float*)launch->arguments[2].data;
  const int64_t* n = launch->arguments[0].shape;
  for (int64_t i = 0; i < n[0] * n[1] * n[2] * n[3]; ++i) master[i] -= lr * gradient[i];
  return NULL;
}
static const mlg_kernel kernel = {"old_step", "cpu", "in gradient, inout master, in scalars", NULL, NULL, run,
                                  NULL,       NULL};

static uint32_t scalar_count(void* instance) {
  (void)instance;
  return 1;
}
static mlg_error record(void* instance, const mlg_recorder* recorder, const mlg_parameter* parameters,
                        uint32_t count, mlg_value scalars) {
  (void)instance;
  for (uint32_t i = 0; i < count; ++i) {
    const mlg_value arguments[3] = {parameters[i].gradient, parameters[i].master, scalars};
    mlg_error error = recorder->launch(recorder->self, "old_step", arguments, 3, NULL, 0);
    if (error) return error;
  }
  return NULL;
}
static mlg_error scalars(void* instance, const mlg_step* step, float* values) {
  mlg_step known = *step; /* all that there was */
  (void)instance;
  values[0] = (float)known.lr;
  return NULL;
}

static const mlg_optimizer_table table = {
    HEADER(mlg_optimizer_table, MLG_OPTIMIZER, "old_optimizer", &kernel, 1),
    create,
    destroy,
    scalar_count,
    record,
    scalars};
EXPORTED const char mlg_abi_1_optimizer_old_optimizer = 1;
EXPORTED const mlg_plugin_header* mlg_plugin(void) {
  return &table.header;
}
