// C++ side of schedule.h: derive from Schedule, then MULLIGAN_EXPORT_SCHEDULE(Class, name).
#pragma once

#include <mulligan/schedule.h>
#include <mulligan/plugin.hpp>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

using Progress = mlg_progress;

// The schedule's values for the next step; members as in schedule.h.
struct Rate {
  double lr = 0;
  std::int64_t cycle = 0;
  double momentum_factor = 1, weight_decay_factor = 1, batch_factor = 1;
};

class Schedule {
 public:
  virtual ~Schedule() = default;

  // The scheduled rate for a group whose configured rate is base_lr. Pure: same arguments, same result.
  virtual Rate rate(const Progress& progress, double base_lr) const = 0;
};

template <typename Class>
mlg_schedule_table make_schedule_table(const char* name) {
  auto table = new_table<Class, Schedule, mlg_schedule_table>(MLG_SCHEDULE, name);
  table.rate = [](void* self, const mlg_progress* progress, double base_lr, mlg_rate* out) -> mlg_error {
    return guarded([&] {
      const Rate rate = static_cast<const Schedule*>(self)->rate(*progress, base_lr);
      *out = {rate.lr, rate.cycle, rate.momentum_factor, rate.weight_decay_factor, rate.batch_factor};
    });
  };
  return table;
}

}  // namespace mulligan::sdk

#pragma GCC visibility pop

#define MULLIGAN_EXPORT_SCHEDULE(Class, name) \
  MULLIGAN_EXPORT_PLUGIN(mulligan::sdk::make_schedule_table<Class>(#name))
