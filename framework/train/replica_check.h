// What every rank computes alike must stay alike: the masters of all ranks are compared by their digests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/graph/tensor_store.h"
#include "framework/ranks/host_group.h"

namespace mulligan {

// Called by all ranks with the same names of tensors, at the same step; waits for the device. Where a rank's
// tensors are not, bit for bit, those of the most ranks (of equally many: those of rank 0), the first such
// rank throws a run_error that names it and its first tensor, and the others throw what that does to them:
// the verdict of the run.
void require_equal_replicas(const TensorStore& store, const std::vector<std::string>& names, HostGroup& group,
                            std::int64_t step);

}  // namespace mulligan
