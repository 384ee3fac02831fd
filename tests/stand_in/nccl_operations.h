// What NCCL's collectives compute, for its stand-in: as bytes that ranks show each other.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace stand_in {

enum class Kind : int { all_reduce, reduce_scatter, all_gather, broadcast, reduce, send, receive };
struct Operation {
  Kind kind;
  const void* from;
  void* to;
  std::size_t count;  // elements, as the function of that name takes it
  int dtype, peer;    // broadcast, reduce: the root
};

// What rank `rank` of `size` shows the others of a group: its operations, and the bytes that they send.
std::string shown(const std::vector<Operation>& group, int rank, int size);

// Writes what `rank` gets by its group, from what all ranks have shown, in their order. False, and nothing is
// written, where they did not come with the same collectives, or nobody sent what was to be received.
bool take(const std::vector<std::string>& shown_by_rank, const std::vector<Operation>& group, int rank);

}  // namespace stand_in
