// Communicator: the collectives of a run on tensors of a store. The host runs them; plugins never do. Small messages between
// ranks go through its HostGroup.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/graph/tensor_store.h"
#include "framework/ranks/host_group.h"

namespace mulligan {

// In the order of mlg_collective_kind.
enum class Collective { all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, reduce };

// One collective between tensors of a store, of the dtype of `from`; <mulligan/communicator.h> defines each kind. `count` is in
// elements: of the whole tensor (all_reduce, broadcast, reduce), or of one rank's share (the others). Sums are over ranks. Except
// for all_to_all, `to` may be `from`. Then a rank's share is at its place in the tensor, rank * count elements from its start. A
// reduce is in place; only `root` has a result.
struct Transfer {
  Collective kind = Collective::all_reduce;
  std::string from, to;
  std::int64_t count = 0;
  int root = 0;  // broadcast: the rank that sends; reduce: the rank that receives
  // All_reduce, broadcast and reduce: the first element, in both tensors.
  std::int64_t offset = 0;
};

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

// Prepared transfers that are done together, by every rank in the same order. The Communicator must outlive it.
class TransferBatch {
 public:
  virtual ~TransferBatch() = default;
  // Starts them after all work that the backend has been given so far. Does not wait and allocates nothing. Call join() before
  // the next submit().
  virtual void submit() = 0;
  // Later work of the backend sees the results of the last submit(). Throws Error if it failed.
  virtual void join() = 0;
  void run() { submit(), join(); }
};

// Numbers of batches since the start: those that this rank's device has reached, and those of them that are done. A rank that
// has reached more than are done waits for another rank or for the network.
struct TransferCount {
  std::uint64_t submitted = 0, completed = 0;
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual HostGroup& group() = 0;
  int rank() { return group().rank(); }
  int world_size() { return group().world_size(); }

  // Precondition: the tensors have the room that <mulligan/communicator.h> requires (TensorStore::reserve).
  virtual std::unique_ptr<TransferBatch> prepare(TensorStore& store, std::vector<Transfer> transfers) = 0;

  // Any thread. The progress of transfers, for heartbeats. Throws run_error if they have failed. A communicator that finishes
  // transfers at once counts none.
  virtual TransferCount transfers() const { return {}; }
  // Any thread. Pending and later transfers fail soon with run_error, even if peers hang.
  virtual void abort() {}

  // Returns when the backend has finished its work. Throws run_error if transfers have failed. Their batches may have been
  // joined before that; then the backend's results are invalid.
  void finish(TensorStore& store);
  // finish(), and then waits until every rank has called it.
  void barrier(TensorStore& store);
};

// The communicator of a run of one rank, whose transfers are in place: nothing moves. With a larger `world_size`: rank 0 of ranks that do
// not exist, for plans. Their transfers move nothing, and their messages are a std::logic_error.
std::unique_ptr<Communicator> make_self_communicator(int world_size = 1);

}  // namespace mulligan
