// StateSnapshot: tensors kept on the host, to be put back later.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/checkpoint/checkpoint_writer.h"
#include "framework/graph/tensor_store.h"
#include "framework/ranks/communicator.h"
#include "framework/run/parameter_plan.h"

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

// The canonical image of a state as sha256: of each tensor its name, type and bytes, after `counters` (what is not a
// tensor, in words). Equal for equal states on whatever backend and, with whole tensors, for any number of ranks.
std::string state_digest(const TensorStore& store, const std::vector<StateTensor>& tensors,
                         std::string_view counters);

// StateExchange: the state of training that ranks have slices of, or one rank alone, whole: as checkpoints keep it, so that it
// does not depend on how many ranks there were. No device holds more of it than its share: the whole is put
// together in memory of the host, through a buffer of a few megabytes.

// A state of which every rank has a slice of the first dimension, the last of them perhaps padded, or one rank all.
struct CutState {
  std::string slice;                        // the tensor of this rank
  std::string name;                         // of the whole, in checkpoints
  TensorType type;                          // of the whole
  int owner = PlannedParameter::everybody;  // the rank that has all of it; others have no such tensor
};

class StateExchange {
 public:
  // Declares its buffer in `store`, which has the slices and must outlive it.
  StateExchange(TensorStore& store, std::vector<CutState> cut, int world_size);

  // Makes the transfers ready for these tensors of the store, which are all that make up the state of a rank.
  // Takes memory.
  void prepare(Communicator& communicator, const std::vector<std::string>& state);

  // How each is kept in a checkpoint. Cut ones are on the host, and nothing is known of them yet.
  std::vector<StateTensor> whole(const std::vector<std::string>& state) const;
  // The same with the slices of all ranks, on rank 0 or, with `everywhere`, on every rank. Waits.
  std::vector<StateTensor> gather(const std::vector<std::string>& state, bool everywhere);
  // What rank 0 has in `tensors`, those of whole(): to all ranks, slices to those that own them.
  void share(const std::vector<StateTensor>& tensors);

 private:
  const CutState* find(const std::string& slice) const;
  std::int64_t slice_bytes(const CutState& cut) const;
  bool is_held(const CutState& cut) const {
    return cut.owner == PlannedParameter::everybody || cut.owner == communicator_->rank();
  }
  // Calls `pass` for each stretch of a slice that the buffer takes: where it begins, and its bytes.
  template <typename Pass>
  void in_stretches(const CutState& cut, Pass&& pass) const;
  void gather_slices(const CutState& cut, HostTensor* whole);
  void share_slices(const CutState& cut, const HostTensor& whole);

  TensorStore& store_;
  Communicator* communicator_ = nullptr;
  std::vector<CutState> cut_;
  int world_size_;
  std::int64_t stretch_ = 0;  // bytes of one rank's part of the buffer
  std::unique_ptr<TransferBatch> gather_, share_, share_whole_;
};

}  // namespace mulligan
