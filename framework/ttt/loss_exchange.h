// LossExchange: losses by stream position, of which each rank has computed some, known to all ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "framework/ranks/communicator.h"

namespace mulligan {

class LossExchange {
 public:
  // For streams of `positions` tokens. Takes memory of the store, f32 [positions]. All ranks make it alike;
  // the arguments must outlive it.
  LossExchange(TensorStore& store, Communicator& communicator, std::int64_t positions);

  // Each position is 0 on all ranks but one at most; then all have it, to the bit. Called by all. Throws
  // run_error where the transfer failed.
  void merge(std::vector<float>& losses);

 private:
  TensorStore& store_;
  Communicator& communicator_;
  std::unique_ptr<TransferBatch> sum_;
};

}  // namespace mulligan
