// The kernels of a forward pass as plain formulas in double precision, written from docs/kernels.md
// alone: a reference for what a backend computed. They lie with their kernels (kernels/NAME/formula.h).
#pragma once

#include <functional>
#include <map>
#include <string_view>
#include <vector>

#include "framework/graph/graph.h"

namespace mulligan::doctor {

// One call and what its arguments hold.
struct ReferenceCall {
  const Call* call = nullptr;
  const Graph* graph = nullptr;
  std::function<std::vector<double>(Value)> read;  // also of integers

  bool has(std::size_t argument) const { return static_cast<bool>(call->arguments[argument]); }
  const TensorType& type(std::size_t argument) const { return graph->type(call->arguments[argument]); }
  std::int64_t dim(std::size_t argument, int axis) const {
    return type(argument).dims[static_cast<std::size_t>(axis)];
  }
  std::vector<double> operator[](std::size_t argument) const { return read(call->arguments[argument]); }
  // 0 where the call has none of that name.
  double attribute(std::string_view name) const;
};

// What the call should have written, by the number of the argument.
using ReferenceResults = std::map<std::size_t, std::vector<double>>;
using Formula = ReferenceResults (*)(const ReferenceCall&);

// Null for a kernel without a formula.
Formula formula_of(std::string_view kernel);
// Null also where formulas do not apply: they overwrite, so calls that add to what is there have none.
Formula formula_of(const ReferenceCall& call);

}  // namespace mulligan::doctor
