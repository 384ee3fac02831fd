/* Gradient descent with momentum that also counts: momentum = 0.5 * momentum + gradient, count += 1,
 * master -= lr * momentum. */
#include <mulligan/optimizer.h>
#include <stdio.h>

#include "old_plugin.h"

_Static_assert(sizeof(mlg_recorder) == 48 && sizeof(mlg_optimizer_table) == 120, "as released");

static mlg_error run(const mlg_launch* launch) {
  const float* gradient = launch->arguments[0].data;
  float* master = launch->arguments[1].data;
  float* momentum = launch->arguments[2].data;
  float* count = launch->arguments[3].data;
  const float lr = *(const float*)launch->arguments[4].data;
  const int64_t* n = launch->arguments[0].shape;
  for (int64_t i = 0; i < n[0] * n[1] * n[2] * n[3]; ++i) {
    momentum[i] = 0.5f * momentum[i] + gradient[i];
    count[i] += 1;
    master[i] -= lr * momentum[i];
  }
  return NULL;
}
static const mlg_kernel kernel = {"old_momentum_step",
                                  "cpu",
                                  "in gradient, inout master, inout momentum, inout count, in scalars",
                                  NULL,
                                  NULL,
                                  run,
                                  NULL,
                                  NULL};

static uint32_t scalar_count(void* instance) {
  (void)instance;
  return 1;
}
static mlg_error record(void* instance, const mlg_recorder* recorder, const mlg_parameter* parameters,
                        uint32_t count, mlg_value scalars) {
  (void)instance;
  for (uint32_t i = 0; i < count; ++i) {
    char name[200];
    mlg_tensor shape;
    mlg_value arguments[5] = {parameters[i].gradient, parameters[i].master, 0, 0, scalars};
    mlg_error error = recorder->describe(recorder->self, parameters[i].gradient, &shape);
    snprintf(name, sizeof name, "%s.momentum", parameters[i].name);
    if (!error) error = recorder->state(recorder->self, name, &shape, &arguments[2]);
    snprintf(name, sizeof name, "%s.count", parameters[i].name);
    if (!error) error = recorder->state(recorder->self, name, &shape, &arguments[3]);
    if (!error) error = recorder->launch(recorder->self, "old_momentum_step", arguments, 5, NULL, 0);
    if (error) return error;
  }
  return NULL;
}
static mlg_error scalars(void* instance, const mlg_step* step, float* values) {
  (void)instance;
  values[0] = (float)step->lr;
  return NULL;
}

static const mlg_optimizer_table table = {
    HEADER(mlg_optimizer_table, MLG_OPTIMIZER, "old_momentum", &kernel, 1),
    create,
    destroy,
    scalar_count,
    record,
    scalars,
    NULL};
EXPORTED const char mlg_abi_1_optimizer_old_momentum = 1;
EXPORTED const mlg_plugin_header* mlg_plugin(void) {
  return &table.header;
}
