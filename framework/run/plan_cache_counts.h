// PlanCacheCounts: how much of what takes long (Backend::made) was made before a clock ran, while it ran, and
// after it.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "framework/plugin/backend.h"
#include "framework/ranks/host_group.h"

namespace mulligan {

class PlanCacheCounts {
 public:
  // Of these backends together, which must outlive this object. What is made while the clock stands between
  // two stretches counts as after it.
  explicit PlanCacheCounts(std::vector<const Backend*> backends) : backends_(std::move(backends)) {}

  void clock_starts();
  void clock_stops();
  // Collective: {"attention_plans": {"before_clock": 22, "on_clock": 0, "after_clock": 0}, ...}, the sums over all ranks;
  // empty where no backend counts anything.
  nlohmann::ordered_json counts(HostGroup& group) const;

 private:
  using Counts = std::map<std::string, std::int64_t>;
  Counts now() const;

  std::vector<const Backend*> backends_;
  bool started_ = false;
  Counts before_, on_clock_, at_start_;
};

}  // namespace mulligan
