// StateSnapshot: tensors kept on the host, to be put back later.
#pragma once

#include <string>
#include <vector>

#include "framework/graph/tensor_store.h"

namespace mulligan {

class StateSnapshot {
 public:
  // Downloads the tensors; those that are all zero cost no memory.
  StateSnapshot(TensorStore& store, std::vector<std::string> names);
  void restore() const;

 private:
  TensorStore& store_;
  std::vector<std::string> names_;
  std::vector<std::vector<std::byte>> contents_;  // empty: all zero
};

}  // namespace mulligan
