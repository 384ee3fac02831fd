// A tensor of the state of training, whole: in the store, or on the host, where each rank has but a slice.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/graph/tensor_store.h"

namespace mulligan {

// A tensor in memory of the host. No bytes: not known here.
struct HostTensor {
  TensorType type;
  std::vector<std::byte> bytes;
};

// What a checkpoint calls a tensor, and where it is whole: in tensor `source` of the store, or in `host`.
struct StateTensor {
  std::string name, source;
  std::shared_ptr<HostTensor> host = nullptr;  // null: the store has it whole

  const TensorType& type(const TensorStore& store) const { return host ? host->type : store.type(source); }
  // Its bytes; waits for the device. std::logic_error where they are not known on this rank.
  void read(const TensorStore& store, std::span<std::byte> bytes) const;
  std::vector<std::byte> read(const TensorStore& store) const;
  // Puts them into the store or, for the ranks to share, on the host.
  void write(TensorStore& store, std::span<const std::byte> bytes) const;
};

// Those that are called in the store as in a checkpoint.
std::vector<StateTensor> state_tensors_of(const std::vector<std::string>& names);

}  // namespace mulligan
