/* Schedule plugins: the learning rate as a pure function of progress. */
#ifndef MULLIGAN_SCHEDULE_H
#define MULLIGAN_SCHEDULE_H

#include <mulligan/abi.h>
#include <mulligan/config.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mlg_progress {
  int64_t step;           /* updates done so far: 0 before the first */
  int64_t total_steps;    /* 0: the run is bounded by its wall-clock budget only */
  double budget_fraction; /* share of the budget that is spent, 0 to 1: of the wall clock, or of total_steps without one */
  double epoch;           /* passes over the training data, fractional */
} mlg_progress;

typedef struct mlg_rate {
  double lr;
  int64_t cycle; /* 0, 1, ... : grows by one at each warm restart, which the host then logs; 0 where there are none */
} mlg_rate;

typedef struct mlg_schedule_table {
  mlg_plugin_header header;
  mlg_error (*create)(const mlg_host* host, const mlg_config* config, void** instance);
  void (*destroy)(void* instance);
  /* The scheduled rate for a group whose configured rate is base_lr. Pure: same arguments, same result. */
  mlg_error (*rate)(void* instance, const mlg_progress* progress, double base_lr, mlg_rate* out);
} mlg_schedule_table;

#ifdef __cplusplus
}
#endif
#endif
