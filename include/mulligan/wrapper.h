/* Wrapper plugins act once after each update of all optimisers of a run. */
#ifndef MULLIGAN_WRAPPER_H
#define MULLIGAN_WRAPPER_H

#include <mulligan/config.h>
#include <mulligan/kernel.h>
#include <mulligan/recorder.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One parameter of the run; whole, even if ranks update slices of it. Only the host makes these. */
typedef struct mlg_wrapped_parameter {
  const char* name;
  /* f32 or bf16. In: the result of the optimisers. Out: the weights of the next forward pass, gradient and update. */
  mlg_value master;
  /* The weights at rest: scored, averaged, saved and kept in checkpoints, with the master's shape and dtype. In: those before
   * the update. At the first update, and after the optimisers' states were cleared, they are the weights that training
   * starts from. Out: those after the update. */
  mlg_value rest;
} mlg_wrapped_parameter;

/* The rate of one optimiser in the coming update. */
typedef struct mlg_group_rate {
  const char* name; /* NAME of [optimizer.NAME] */
  double lr;        /* scheduled, before lr_multiplier */
  double base_lr;   /* as configured */
} mlg_group_rate;

/* The coming update. Only the host makes these. */
typedef struct mlg_wrapper_step {
  int64_t step;                /* 1 for the first update since the optimisers' states were empty */
  int64_t total_steps;         /* 0: the run is bounded by its wall-clock budget only */
  double budget_fraction;      /* share of the budget that is spent before this update, 0 to 1 */
  const mlg_group_rate* rates; /* of all optimisers, in the order of the configuration */
  uint32_t rate_count;
} mlg_wrapper_step;

typedef struct mlg_wrapper_table {
  mlg_plugin_header header;
  /* Makes the run's instance. `config` is valid during the call only. */
  mlg_error (*create)(const mlg_host* host, const mlg_config* config, void** instance);
  void (*destroy)(void* instance);
  /* How many f32 numbers scalars() supplies; constant over the instance's life. */
  uint32_t (*scalar_count)(void* instance);
  /* Records the work that follows an update of all parameters by their optimisers. `scalars` as in optimizer.h. Called once
   * per plan. The recorded calls may depend on the configuration and the shapes only. Element i of master, rest and states
   * may depend only on the elements i and on `scalars`. So the host may pass several parameters of equal dtypes, consecutive
   * in memory (zeros between them), as one of rank 1; each rank decides this for itself. States have the parameter's shape
   * and names that begin with its name. */
  mlg_error (*record)(void* instance, const mlg_recorder* recorder, const mlg_wrapped_parameter* parameters,
                      uint32_t count, mlg_value scalars);
  /* Fills `values` for the coming step. On the step path: no allocation, no synchronisation. Must be a pure
   * function of the configuration and `*step`. */
  mlg_error (*scalars)(void* instance, const mlg_wrapper_step* step, float* values);
} mlg_wrapper_table;

#ifdef __cplusplus
}
#endif
#endif
