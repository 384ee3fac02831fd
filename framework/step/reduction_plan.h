// ReductionPlan: in which parts gradients are summed over ranks, and when within a backward pass the sum of each
// may begin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/graph/graph.h"
#include "framework/run/parameter_plan.h"
#include "framework/step/update_units.h"

namespace mulligan {

// Elements of a unit's gradient that are summed by themselves: a matrix of a bank, or all of it.
struct GradientPart {
  static constexpr int everybody = -1;
  std::size_t unit = 0;  // index into UpdateUnits::parameters()
  std::int64_t offset = 0, elements = 0;
  int owner = everybody;  // the rank that alone needs the sum: of a cut unit
};

// The parts of everything that is trained, in the order of the units. Padding is in none.
std::vector<GradientPart> gradient_parts(const std::vector<PlannedParameter>& units, int world_size);

// Of each part: so many calls of `graph` make it complete, for no later one mentions it. 0: none does.
std::vector<std::size_t> complete_after(const Graph& graph, const UpdateUnits& units,
                                        const std::vector<GradientPart>& parts);

// After `calls` calls these parts, indices, are complete, and are worth a batch of transfers.
struct ReductionStage {
  std::size_t calls = 0;
  std::vector<std::size_t> parts;
};
// Cuts a graph of `calls` calls so that no stage moves much less than others, and none little; the last one ends
// with the graph and has what is left. `bytes` of each part as it travels.
std::vector<ReductionStage> reduction_stages(const std::vector<std::size_t>& complete_after,
                                             const std::vector<std::int64_t>& bytes, std::size_t calls);

}  // namespace mulligan
