// Communicator: the collectives of a run on tensors of a store. The host runs them; plugins never do. Small
// messages between ranks go through its HostGroup.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/graph/tensor_store.h"
#include "framework/ranks/host_group.h"

namespace mulligan {

enum class Collective { all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, reduce };

// One collective between tensors of a store, of the dtype of `from`; <mulligan/communicator.h> says what each
// does. `count` elements: of the whole tensor (all_reduce, broadcast, reduce), of one rank's share (the others).
// Sums are over ranks. `to` may be `from`, but for all_to_all: then a rank's share is at its place in the tensor,
// rank * count elements from its start. A reduce is in place; only `root` has a result.
struct Transfer {
  Collective kind = Collective::all_reduce;
  std::string from, to;
  std::int64_t count = 0;
  int root = 0;  // broadcast: the rank that has it; reduce: the one that gets it
  // All_reduce, broadcast and reduce: of the elements from here on, in both tensors.
  std::int64_t offset = 0;
};

// Transfers made ready, which are done together: by every rank in the same order. The Communicator must
// outlive it.
class TransferBatch {
 public:
  virtual ~TransferBatch() = default;
  // Starts them, after all work that the backend has been given so far; does not wait and allocates nothing.
  // Joined before it is submitted again.
  virtual void submit() = 0;
  // Later work of the backend sees the results of the last submit(). Throws Error where it failed.
  virtual void join() = 0;
};

// Batches since the start: those that this rank's device has come to, and of these those that are done. A
// rank that has come to more than are done waits for another, or for the network.
struct TransferCount {
  std::uint64_t submitted = 0, completed = 0;
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual HostGroup& group() = 0;
  int rank() { return group().rank(); }
  int world_size() { return group().world_size(); }

  // Precondition: the tensors have room for what <mulligan/communicator.h> says (TensorStore::reserve).
  virtual std::unique_ptr<TransferBatch> prepare(TensorStore& store, std::vector<Transfer> transfers) = 0;

  // Any thread. How far transfers have come, for heartbeats; throws run_error where they have failed. A
  // communicator that finishes them at once counts none.
  virtual TransferCount transfers() const { return {}; }
  // Any thread: pending and later transfers fail soon with run_error, whatever the peers do.
  virtual void abort() {}

  // Returns when the backend has finished its work. Throws run_error where transfers have failed: their
  // batches may have been joined before that, and what the backend has made of them is nothing.
  void finish(TensorStore& store);
  // finish(), and every rank has come here.
  void barrier(TensorStore& store);
};

// The communicator of a run of one rank: copies, where `from` is not `to`.
std::unique_ptr<Communicator> make_self_communicator();

// Rank 0 of `world_size` ranks that are not there, for plans: every transfer and
// message is a std::logic_error.
std::unique_ptr<Communicator> make_planned_communicator(int world_size);

}  // namespace mulligan
