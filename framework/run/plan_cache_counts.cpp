#include "framework/run/plan_cache_counts.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace mulligan {

PlanCacheCounts::Counts PlanCacheCounts::now() const {
  Counts counts;
  for (const Backend* backend : backends_()) {
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

std::vector<MadeCount> PlanCacheCounts::counts(HostGroup& group) const {
  const auto of = [](const Counts& counts, const std::string& what) {
    const auto found = counts.find(what);
    return found == counts.end() ? std::int64_t{0} : found->second;
  };
  std::vector<MadeCount> made;
  std::vector<double> sums;
  for (const auto& [what, all] : now()) {
    const std::int64_t before = of(before_, what), on_clock = of(on_clock_, what);
    made.push_back({what});
    for (const std::int64_t count : {before, on_clock, all - before - on_clock})
      sums.push_back(static_cast<double>(count));
  }
  group.sum(sums);
  for (std::size_t i = 0; i < made.size(); ++i) {
    made[i].before_clock = static_cast<std::int64_t>(sums[3 * i]);
    made[i].on_clock = static_cast<std::int64_t>(sums[3 * i + 1]);
    made[i].after_clock = static_cast<std::int64_t>(sums[3 * i + 2]);
  }
  return made;
}

nlohmann::ordered_json to_json(const std::vector<MadeCount>& made) {
  auto json = nlohmann::ordered_json::object();
  for (const MadeCount& count : made) {
    json[count.what] = {{"before_clock", count.before_clock},
                        {"on_clock", count.on_clock},
                        {"after_clock", count.after_clock}};
  }
  return json;
}

std::string made_text(const std::vector<MadeCount>& made) {
  std::string text;
  for (const MadeCount& count : made) {
    text += fmt::format("{}{} {} + {} + {}", text.empty() ? "" : ", ", count.what, count.before_clock,
                        count.on_clock, count.after_clock);
  }
  return text;
}

}  // namespace mulligan
