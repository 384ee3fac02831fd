// Checks of schedule plugins.

#include "framework/check/kind_checks.h"
#include "framework/plugin/schedule.h"

namespace mulligan {
namespace {

// Progress of a run by steps and of one by the clock, from its first to a late step.
std::vector<mlg_progress> grid() {
  std::vector<mlg_progress> points;
  constexpr std::int64_t steps = 1000;
  for (std::int64_t step = 0; step <= steps; step += 5) {
    const double share = static_cast<double>(step) / steps;
    points.push_back({step, steps, share, 3 * share});
  }
  points.push_back({steps + 50, steps, 1.0, 3.2});  // the clock may run over
  return points;
}

bool same(const mlg_rate& a, const mlg_rate& b) {
  return a.lr == b.lr && a.cycle == b.cycle && a.momentum_factor == b.momentum_factor &&
         a.weight_decay_factor == b.weight_decay_factor && a.batch_factor == b.batch_factor;
}

}  // namespace

void check_schedule(const PluginHandle& plugin, const PluginConfig& config, CheckList& list) {
  const Schedule schedule(plugin, config);
  const std::vector<mlg_progress> points = grid();
  list.add("rates and factors are finite and not negative", [&] {
    for (const mlg_progress& point : points) {
      for (const double base : {0.0, 1e-4, 0.3}) schedule.rate(point, base);
    }
    return std::string();
  });
  list.add("the same progress gives the same rate", [&] {
    std::vector<mlg_rate> first;
    for (const mlg_progress& point : points) first.push_back(schedule.rate(point, 0.3));
    const Schedule fresh(plugin, config);
    for (std::size_t i = points.size(); i-- > 0;) {
      if (!same(schedule.rate(points[i], 0.3), first[i]) || !same(fresh.rate(points[i], 0.3), first[i])) {
        return fmt::format("step {} gives another rate when it is asked for again", points[i].step + 1);
      }
    }
    return std::string();
  });
  list.add("cycles only grow", [&] {
    std::int64_t cycle = 0;
    for (const mlg_progress& point : points) {
      const std::int64_t now = schedule.rate(point, 0.3).cycle;
      if (now < cycle)
        return fmt::format("step {} is in cycle {}, after cycle {}", point.step + 1, now, cycle);
      cycle = now;
    }
    return std::string();
  });
  list.add("no allocation on the step path",
           [&] { return allocation_problem("rate()", [&] { schedule.rate(points[7], 0.3); }); });
}

}  // namespace mulligan
