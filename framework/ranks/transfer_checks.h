// The memory that a Transfer reads and writes, and whether it is possible at all.
#pragma once

#include <cstddef>

#include "framework/ranks/communicator.h"

namespace mulligan {

// The bytes that one rank's part of a transfer reads from `from` and writes to `to`, from these offsets on. In place (`from` is
// `to`) a rank's share is at its place in the tensor.
struct TransferExtent {
  std::size_t from_offset = 0, from_bytes = 0, to_offset = 0, to_bytes = 0;
};

// Throws std::logic_error if the transfer cannot work with `world_size` ranks, or could not with more than one: a sum of a dtype
// that is not summed, tensors of two dtypes or without room, a root that is not a rank, an all_to_all in place.
TransferExtent transfer_extent(const TensorStore& store, const Transfer& transfer, int rank, int world_size);

// "all_reduce"
const char* collective_name(Collective kind);

}  // namespace mulligan
