/* Optimiser plugins: record the update of a group of parameters once; supply a few numbers before each step.
 */
#ifndef MULLIGAN_OPTIMIZER_H
#define MULLIGAN_OPTIMIZER_H

#include <mulligan/config.h>
#include <mulligan/kernel.h>
#include <mulligan/recorder.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One parameter of the group (with communication = "sharded": this rank's slice along the first dimension).
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
  /* Factors by which the group's schedule changes momentum and weight decay, 1 where it says nothing. An
   * optimiser that cannot honour one refuses it. */
  double momentum_factor;
  double weight_decay_factor;
} mlg_step;

/* What is to be done in the pass over memory that an update makes anyway. Only the host makes these. */
typedef struct mlg_update {
  mlg_value gradient_scale; /* [1] f32: every gradient counts times this, the clip's factor; 0: times one */
  /* Per parameter, 0 for none: average f32, of the master's shape, becomes average_decay * average + (1 -
   * average_decay) * master, with the new master as rounded to its dtype; */
  const mlg_value* averages;
  double average_decay;
  /* copy f32 or bf16, of the master's shape, becomes the new master in its own dtype. */
  const mlg_value* copies;
} mlg_update;

typedef struct mlg_optimizer_table {
  mlg_plugin_header header;
  /* Makes an instance for one group. `config` is valid during the call only. */
  mlg_error (*create)(const mlg_host* host, const mlg_config* config, void** instance);
  void (*destroy)(void* instance);
  /* How many f32 numbers scalars() supplies; constant over the instance's life. */
  uint32_t (*scalar_count)(void* instance);
  /* Records one update of all parameters. `scalars` is an f32 [scalar_count] tensor that holds, at each
   * replay, what scalars() wrote for that step: everything that changes from step to step goes through it.
   * Called once per plan, or once for each of several disjoint parts of the group; the calls recorded must
   * not depend on anything but the configuration and the shapes. */
  mlg_error (*record)(void* instance, const mlg_recorder* recorder, const mlg_parameter* parameters,
                      uint32_t count, mlg_value scalars);
  /* Fills `values` for the coming step. On the step path: no allocation, no synchronisation. Must be a pure
   * function of the configuration and `*step` (so that a resumed run continues exactly). */
  mlg_error (*scalars)(void* instance, const mlg_step* step, float* values);
  /* May be null: the masters are what is scored and saved. Otherwise records the calls that write what is
   * scored, saved and quantised instead: evaluation[i], f32 in the shape of
   * parameters[i].master, from masters and states (the recorder gives record()'s states under the same names;
   * gradients are 0). Masters and states stay as they are, so training goes on exactly as if nothing had been
   * evaluated. */
  mlg_error (*record_evaluation)(void* instance, const mlg_recorder* recorder,
                                 const mlg_parameter* parameters, uint32_t count,
                                 const mlg_value* evaluation);
  /* May be null: record(), and what `update` asks for; called in place of record() where there is anything to
   * ask for. Same states, same scalars. */
  mlg_error (*record_update)(void* instance, const mlg_recorder* recorder, const mlg_parameter* parameters,
                             uint32_t count, mlg_value scalars, const mlg_update* update);
  /* 1: all states whose names begin with a parameter's name have its shape, and element i of
   * master, states and evaluation depends on the elements i of gradient, master and states alone, and on what
   * all parameters share. The host may then hand over several parameters with equal multipliers and dtypes,
   * consecutive in memory (zeros between them), as one of rank 1. */
  int32_t elementwise;
} mlg_optimizer_table;

#ifdef __cplusplus
}
#endif
#endif
