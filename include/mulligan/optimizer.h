/* Optimiser plugins record the update of a group of parameters once, and supply a few numbers before each step.
 */
#ifndef MULLIGAN_OPTIMIZER_H
#define MULLIGAN_OPTIMIZER_H

#include <mulligan/config.h>
#include <mulligan/kernel.h>
#include <mulligan/recorder.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One parameter of the group. With communication = "sharded" it is this rank's slice along the first dimension.
 */
typedef struct mlg_parameter {
  const char* name;
  mlg_value master;   /* f32 or bf16; updated in place */
  mlg_value gradient; /* f32, same shape; reduced over ranks and clipped; may be overwritten */
  double lr_multiplier;
  double weight_decay_multiplier;
} mlg_parameter;

/* The coming update. Only the host makes these. */
typedef struct mlg_step {
  int64_t step;           /* 1 for the first update (mlg_progress.step counts from 0) */
  double lr;              /* scheduled learning rate of the group, before lr_multiplier */
  int64_t total_steps;    /* 0: the run is bounded by its wall-clock budget only */
  double budget_fraction; /* share of the budget that is spent before this update, 0 to 1 (mlg_progress) */
  /* Factors of the group's schedule on momentum and weight decay; 1: no change. An optimiser that cannot apply a factor
   * refuses it. */
  double momentum_factor;
  double weight_decay_factor;
} mlg_step;

/* Further work for the update's own pass over memory. Only the host makes these. */
typedef struct mlg_update {
  mlg_value gradient_scale; /* [1] f32: factor on every gradient, from clipping; 0: none */
  /* One per parameter, 0 for none: f32 of the master's shape. The average becomes average_decay * average + (1 -
   * average_decay) * master, with the new master after rounding to its dtype. */
  const mlg_value* averages;
  double average_decay;
  /* One per parameter, 0 for none: f32 or bf16 of the master's shape. The copy becomes the new master in its own dtype. */
  const mlg_value* copies;
} mlg_update;

typedef struct mlg_optimizer_table {
  mlg_plugin_header header;
  /* Makes an instance for one group. `config` is valid during the call only. */
  mlg_error (*create)(const mlg_host* host, const mlg_config* config, void** instance);
  void (*destroy)(void* instance);
  /* How many f32 numbers scalars() supplies; constant over the instance's life. */
  uint32_t (*scalar_count)(void* instance);
  /* Records one update of all parameters. `scalars` is an f32 [scalar_count] tensor; at each replay it holds what scalars()
   * wrote for that step. Everything that changes from step to step goes through it. Called once per plan, or once for each
   * of several disjoint parts of the group. The recorded calls may depend on the configuration and the shapes only. They
   * also do the work of `update`, which is null if there is none or fused_update is 0. */
  mlg_error (*record)(void* instance, const mlg_recorder* recorder, const mlg_parameter* parameters,
                      uint32_t count, mlg_value scalars, const mlg_update* update);
  /* Fills `values` for the coming step. On the step path: no allocation, no synchronisation. Must be a pure
   * function of the configuration and `*step` (so that a resumed run continues exactly). */
  mlg_error (*scalars)(void* instance, const mlg_step* step, float* values);
  /* May be null: then the masters are scored and saved. Otherwise it records the calls that write the weights to score, save
   * and quantise: evaluation[i], f32 in the shape of parameters[i].master, from masters and states. The recorder gives
   * record()'s states under the same names; gradients are 0. Masters and states do not change, so an evaluation does not
   * affect training. */
  mlg_error (*record_evaluation)(void* instance, const mlg_recorder* recorder,
                                 const mlg_parameter* parameters, uint32_t count,
                                 const mlg_value* evaluation);
  /* 1: record() takes an `update`. States and scalars are the same with it and without. */
  int32_t fused_update;
  /* 1: the update is elementwise. All states whose names begin with a parameter's name have its shape. Element i of master,
   * states and evaluation depends only on the elements i of gradient, master and states, and on values that all parameters
   * share. The host may then pass several parameters with equal multipliers and dtypes, consecutive in memory (zeros between
   * them), as one of rank 1. */
  int32_t elementwise;
} mlg_optimizer_table;

#ifdef __cplusplus
}
#endif
#endif
