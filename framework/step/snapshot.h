// StateSnapshot: tensors kept on the host, to be put back later.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/checkpoint/state_tensor.h"
#include "framework/graph/tensor_store.h"

namespace mulligan {

class StateSnapshot {
 public:
  // Downloads the tensors; those that are all zero cost no memory.
  StateSnapshot(TensorStore& store, std::vector<std::string> names);
  void restore() const { restore_to(store_); }
  // Into another store, also of another backend, that has tensors of the same names and types.
  void restore_to(TensorStore& store) const;
  // The first tensor that no longer is, bit for bit, what was kept. Waits for the device.
  std::optional<std::string> first_difference() const;

 private:
  TensorStore& store_;
  std::vector<std::string> names_;
  std::vector<std::vector<std::byte>> contents_;  // empty: all zero
};

// The canonical image of a state as sha256: of each tensor (its name, type and bytes), and of `counters`
// (what is no tensor, in words) with these. Equal for equal states on whatever backend and, with whole
// tensors, for any number of ranks.
struct StateDigest {
  std::string sha256;
  std::vector<std::string> tensors;  // in the order given
};
StateDigest state_digest(const TensorStore& store, const std::vector<StateTensor>& tensors,
                         std::string_view counters);

}  // namespace mulligan
