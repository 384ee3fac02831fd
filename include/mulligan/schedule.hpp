// C++ side of schedule.h: derive from Schedule, then MULLIGAN_EXPORT_SCHEDULE(Class, name).
#pragma once

#include <mulligan/schedule.h>
#include <mulligan/plugin.hpp>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

using Progress = mlg_progress;

// The schedule's values for the next step; members as in schedule.h.
struct Rate : mlg_rate {
  Rate(double rate, std::int64_t restarts) : mlg_rate{rate, restarts, 1, 1, 1} {}
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
    return guarded([&] { *out = static_cast<const Schedule*>(self)->rate(*progress, base_lr); });
  };
  return table;
}

}  // namespace mulligan::sdk

#pragma GCC visibility pop

#define MULLIGAN_EXPORT_SCHEDULE(Class, name) \
  MULLIGAN_EXPORT_PLUGIN(mulligan::sdk::make_schedule_table<Class>(#name))
