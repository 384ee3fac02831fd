#include "framework/run/plan_cache_counts.h"

#include <nlohmann/json.hpp>

namespace mulligan {

PlanCacheCounts::Counts PlanCacheCounts::now() const {
  Counts counts;
  for (const Backend* backend : backends_) {
    for (const auto& [what, count] : backend->made()) counts[what] += static_cast<std::int64_t>(count);
  }
  return counts;
}

void PlanCacheCounts::clock_starts() {
  at_start_ = now();
  if (!started_) before_ = at_start_;
  started_ = true;
}

void PlanCacheCounts::clock_stops() {
  for (const auto& [what, count] : now()) on_clock_[what] += count - at_start_[what];
}

nlohmann::ordered_json PlanCacheCounts::counts(HostGroup& group) const {
  const Counts all = now();
  std::vector<double> sums;
  for (const auto& [what, count] : all) {
    const auto of = [&what = what](const Counts& counts) {
      const auto found = counts.find(what);
      return found == counts.end() ? std::int64_t{0} : found->second;
    };
    const std::int64_t before = of(before_), on_clock = of(on_clock_);
    for (const std::int64_t made : {before, on_clock, count - before - on_clock})
      sums.push_back(static_cast<double>(made));
  }
  group.sum(sums);
  auto json = nlohmann::ordered_json::object();
  auto sum = sums.begin();
  for (const auto& [what, count] : all) {
    for (const char* when : {"before_clock", "on_clock", "after_clock"})
      json[what][when] = static_cast<std::int64_t>(*sum++);
  }
  return json;
}

}  // namespace mulligan
