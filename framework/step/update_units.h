// What an optimiser updates at once: single parameters, or several of equal treatment that are consecutive in
// memory, so that one call takes them all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "framework/graph/graph.h"
#include "framework/graph/tensor_store.h"
#include "framework/run/parameter_plan.h"

namespace mulligan {

class UpdateUnits {
 public:
  UpdateUnits() = default;
  // Joins parameters whose optimiser `joins` (by its index): those that agree on optimiser, multipliers,
  // dtypes and communication, are replicated, and are not alone in that. The layout depends on nothing else,
  // so it is that of any number of ranks. `apart`: projections join none but projections, since their copies
  // may have a dtype of their own.
  UpdateUnits(const std::vector<PlannedParameter>& parameters, const std::vector<std::string>& optimizers,
              const std::function<bool(std::size_t)>& joins, bool apart = false);

  // In the order of their first parameters. A joined unit is a parameter of rank 1, whose elements between
  // its members are zero in every tensor; its tensors have its name in the place of a parameter's. What
  // nothing updates is a unit, too, for it has copies and averages.
  const std::vector<PlannedParameter>& parameters() const { return units_; }

  // A tensor of one parameter within that of a unit.
  struct Part {
    std::string name;
    TensorType type;
    std::int64_t offset = 0;  // in elements
  };
  // The parts of tensor `name` of a joined unit: those of its parameters; where it has another number of
  // elements than the unit, one part, which bears the first parameter's name. Empty for all other tensors.
  std::vector<Part> parts(const std::string& name, const TensorType& type) const;
  // Gives the parts of `name` their place in `store`.
  void place(TensorStore& store, const std::string& name, const TensorType& type) const;

 private:
  struct Member {
    std::string parameter;
    TensorType type;
    std::int64_t offset = 0;
  };
  struct Joined {
    std::string name;
    std::int64_t elements = 0;
    std::vector<Member> members;
  };
  std::vector<PlannedParameter> units_;
  std::vector<Joined> joined_;
};

// ReductionPlan: in which parts gradients are summed over ranks, and when within a backward pass the sum of each
// may begin.

// Elements of a unit's gradient that are summed by themselves: a matrix of a bank, or all of it.
struct GradientPart {
  std::size_t unit = 0;  // index into UpdateUnits::parameters()
  std::int64_t offset = 0, elements = 0;
  int owner = PlannedParameter::everybody;  // or the rank that alone needs the sum
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
