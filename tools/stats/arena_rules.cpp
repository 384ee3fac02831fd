#include "tools/stats/arena_rules.h"

#include <cmath>
#include <numbers>
#include <stdexcept>

#include "framework/core/statistic.h"

namespace mulligan::stats {
namespace {

constexpr double arena_target = 3.28;           // nats per token
constexpr double arena_margin = 0.004;          // of the target, for one run: 3.09 sigma, p < 0.001
constexpr double arena_sigma = 0.0013;          // of one run's loss, which the benchmark takes as known
constexpr double nats_per_step = 0.0045 / 100;  // what a step more is worth near the target

// The rule names 3.276 as the limit of a single run, which in binary lies just below or above it.
bool reaches_margin(double value) {
  return value >= arena_margin - 1e-9;
}

double p_of(double value) {
  return std::erfc(value / arena_sigma / std::numbers::sqrt2) / 2;
}

}  // namespace

ArenaStep judge_arena_step(std::int64_t step, std::span<const double> losses) {
  if (losses.empty()) throw std::invalid_argument("a result needs a run");
  const Statistic statistic = statistic_of(losses);
  ArenaStep result;
  result.step = step;
  result.runs = statistic.n;
  result.mean = statistic.mean;
  result.deviation = statistic.deviation;
  result.value = (arena_target - result.mean) * std::sqrt(static_cast<double>(result.runs));
  result.p = p_of(result.value);
  result.accepted = reaches_margin(result.value);
  return result;
}

std::vector<ArenaStep> judge_arena(std::span<const ArenaRun> runs) {
  std::vector<ArenaStep> steps;
  if (runs.empty()) return steps;
  for (const auto& [step, first] : runs.front().losses) {
    std::vector<double> losses;
    for (const ArenaRun& run : runs) {
      const auto found = run.losses.find(step);
      if (found != run.losses.end()) losses.push_back(found->second);
    }
    if (losses.size() == runs.size()) steps.push_back(judge_arena_step(step, losses));
  }
  return steps;
}

std::optional<ArenaStep> earliest_accepted(std::span<const ArenaStep> steps) {
  for (const ArenaStep& step : steps) {
    if (step.accepted) return step;
  }
  return {};
}

ArenaComparison compare_arena(const ArenaStep& old_result, const ArenaStep& new_result) {
  if (old_result.runs == 0 || new_result.runs == 0)
    throw std::invalid_argument("a comparison needs runs of both results");
  const double steps = static_cast<double>(old_result.step - new_result.step) * nats_per_step;
  const double spread =
      std::sqrt(1.0 / static_cast<double>(old_result.runs) + 1.0 / static_cast<double>(new_result.runs));
  ArenaComparison result;
  result.value = (old_result.mean - new_result.mean + steps) / spread;
  result.p = p_of(result.value);
  result.better = reaches_margin(result.value);
  return result;
}

std::optional<std::pair<std::string, std::string>> same_arena_run(std::span<const ArenaRun> runs) {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      std::size_t common = 0, equal = 0;
      for (const auto& [step, loss] : runs[i].losses) {
        const auto other = runs[j].losses.find(step);
        if (other == runs[j].losses.end()) continue;
        ++common;
        equal += other->second == loss;
      }
      if (common >= 3 && equal == common) return std::pair{runs[j].name, runs[i].name};
    }
  }
  return {};
}

}  // namespace mulligan::stats
