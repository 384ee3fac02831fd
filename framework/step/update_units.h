// What an optimiser updates at once: single parameters, or several of equal treatment that lie behind each
// other in memory, so that one call takes them all.
#pragma once

#include <functional>
#include <string>
#include <vector>

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
  // The same of every external of `graph`.
  void place_externals(TensorStore& store, const Graph& graph) const;

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

}  // namespace mulligan
