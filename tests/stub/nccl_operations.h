// What NCCL's collectives compute, for its stub: as bytes that ranks show each other.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace stub {

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

// Writes what `rank` gets by its group, from what all ranks have shown, in their order. If the ranks' collectives differ, or
// no rank sent what was to be received, it writes nothing and returns a sentence that names call and argument. Otherwise the
// sentence is empty.
std::string take(const std::vector<std::string>& shown_by_rank, const std::vector<Operation>& group,
                 int rank);

// "ncclAllReduce"
const char* name_of(Kind kind);
// What an operation reads and writes on rank `rank` of `size`, in bytes; 0: nothing.
std::size_t bytes_read(const Operation& one, int rank, int size);
std::size_t bytes_written(const Operation& one, int rank, int size);

}  // namespace stub
