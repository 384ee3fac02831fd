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
  void restore() const { restore_to(store_); }
  // Into another store, also of another backend, that has tensors of the same names and types.
  void restore_to(TensorStore& store) const;

 private:
  TensorStore& store_;
  std::vector<std::string> names_;
  std::vector<std::vector<std::byte>> contents_;  // empty: all zero
};

// The sha256 over names and bytes of tensors: equal for equal states on whatever backend.
std::string state_digest(const TensorStore& store, const std::vector<std::string>& names);

}  // namespace mulligan
