/* Optimiser plugins: record the update of a group of parameters once; supply a few numbers before each step. */
#ifndef MULLIGAN_OPTIMIZER_H
#define MULLIGAN_OPTIMIZER_H

#include <mulligan/config.h>
#include <mulligan/kernel.h>
#include <mulligan/recorder.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One parameter of the group (with communication = "sharded": this rank's slice along the first dimension). */
typedef struct mlg_parameter {
  const char* name;
  mlg_value master;   /* f32 or bf16; updated in place */
  mlg_value gradient; /* f32, same shape; reduced over ranks and clipped; may be overwritten */
  double lr_multiplier;
  double weight_decay_multiplier;
} mlg_parameter;

typedef struct mlg_step {
  int64_t step; /* 1 for the first update */
  double lr;    /* scheduled learning rate of the group, before lr_multiplier */
} mlg_step;

typedef struct mlg_optimizer_table {
  mlg_plugin_header header;
  /* Makes an instance for one group. `config` is valid during the call only. */
  mlg_error (*create)(const mlg_host* host, const mlg_config* config, void** instance);
  void (*destroy)(void* instance);
  /* How many f32 numbers scalars() supplies; constant over the instance's life. */
  uint32_t (*scalar_count)(void* instance);
  /* Records one update of all parameters. `scalars` is an f32 [scalar_count] tensor that holds, at each replay, what
   * scalars() wrote for that step: everything that changes from step to step goes through it. Called once per
   * plan, or once for each of several disjoint parts of the group; the calls recorded must not depend on anything but
   * the configuration and the shapes. */
  mlg_error (*record)(void* instance, const mlg_recorder* recorder, const mlg_parameter* parameters, uint32_t count,
                      mlg_value scalars);
  /* Fills `values` for the coming step. On the step path: no allocation, no synchronisation. Must be a pure function of
   * the configuration and `step` (so that a resumed run continues exactly). */
  mlg_error (*scalars)(void* instance, const mlg_step* step, float* values);
} mlg_optimizer_table;

#ifdef __cplusplus
}
#endif
#endif
