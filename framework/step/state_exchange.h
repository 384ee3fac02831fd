// StateExchange: the state of training that ranks have slices of, whole: as checkpoints keep it, so that it
// does not depend on how many ranks there were.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/checkpoint/checkpoint_writer.h"
#include "framework/dist/communicator.h"

namespace mulligan {

class StateExchange {
 public:
  // `cut`: the states of which each of `world_size` ranks has a slice, with the type of the whole
  // (OptimizerGroups::cut_states). `store` must outlive it.
  StateExchange(TensorStore& store, const std::map<std::string, TensorType>& cut, int world_size);

  // Makes the transfers ready for these tensors of the store, which are all that make up the state of a rank.
  // Takes memory.
  void prepare(Communicator& communicator, const std::vector<std::string>& state);

  // Under which name each is kept, and the tensor that has it whole.
  std::vector<StateTensor> whole(const std::vector<std::string>& state) const;
  // Gathers the slices; from then on the tensors of whole() are so on every rank. Waits for it.
  void gather();
  // What rank 0 has in the tensors of whole(): to all ranks, slices to those that own them.
  void share();

 private:
  TensorStore& store_;
  Communicator* communicator_ = nullptr;
  std::map<std::string, std::string> whole_names_;  // of cut states
  int rank_ = 0;
  std::unique_ptr<TransferBatch> gather_, share_;
};

}  // namespace mulligan
