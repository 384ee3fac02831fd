/* Schedule plugins: the learning rate as a pure function of progress. */
#ifndef MULLIGAN_SCHEDULE_H
#define MULLIGAN_SCHEDULE_H

#include <mulligan/abi.h>
#include <mulligan/config.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mlg_progress {
  int64_t step;        /* updates done so far: 0 before the first (mlg_step.step counts from 1) */
  int64_t total_steps; /* 0: the run is bounded by its wall-clock budget only */
  /* share of the budget that is spent, 0 to 1; without a wall-clock budget, of total_steps */
  double budget_fraction;
  double epoch; /* passes over the training data, fractional */
} mlg_progress;

typedef struct mlg_rate {
  double lr;
  /* 0, 1, ...: grows by one at each warm restart, and the host logs it; 0 without restarts */
  int64_t cycle;
  /* Factors on the run's configured values. The host sets all three to 1 before the call. */
  double momentum_factor;     /* of the optimiser's momentum (adamw: beta1) */
  double weight_decay_factor; /* of the optimiser's weight decay */
  /* of train.tokens_per_step, in whole micro-batches; the same for all groups of a step */
  double batch_factor;
} mlg_rate;

typedef struct mlg_schedule_table {
  mlg_plugin_header header;
  mlg_error (*create)(const mlg_host* host, const mlg_config* config, void** instance);
  void (*destroy)(void* instance);
  /* The scheduled rate for a group whose configured rate is base_lr. Pure: same arguments, same result. Every number must be
   * finite and not negative, and batch_factor more than 0. Anything else ends the run with a sentence.
   */
  mlg_error (*rate)(void* instance, const mlg_progress* progress, double base_lr, mlg_rate* out);
} mlg_schedule_table;

#ifdef __cplusplus
}
#endif
#endif
