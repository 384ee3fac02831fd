// What every rank computes alike must stay alike: the masters of all ranks are compared by their digests, for nothing
// is saved of ranks that have drifted apart.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/graph/tensor_store.h"
#include "framework/ranks/host_group.h"
#include "framework/run/parameter_plan.h"

namespace mulligan {

class ReplicaCheck {
 public:
  explicit ReplicaCheck(const std::vector<PlannedParameter>& parameters);
  // Called by all ranks at the same step, and compares once after each; waits for the device. Where a rank's masters
  // are not, bit for bit, those of the most ranks (of equally many: those of rank 0), the first such rank throws a
  // run_error that names it and its first tensor, and the others throw what that does to them: the verdict of the run.
  void require_equal(const TensorStore& store, HostGroup& group, std::int64_t step);

 private:
  std::vector<std::string> masters_;
  std::int64_t compared_step_ = 0;  // updates done when they were compared last
};

}  // namespace mulligan
