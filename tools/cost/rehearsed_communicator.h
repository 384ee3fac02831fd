// A communicator of the first of several ranks that are not there: it keeps what it is given to transfer, and
// tells when. Messages between hosts are a std::logic_error.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "framework/ranks/communicator.h"
#include "tools/cost/step_rehearsal.h"

namespace mulligan {

class RehearsedCommunicator final : public Communicator {
 public:
  // `tell`: a batch, by its number in batches(), is submitted or joined.
  using Tell = std::function<void(StepEvent::Kind, std::size_t)>;
  RehearsedCommunicator(int ranks, Tell tell);

  HostGroup& group() override;
  std::unique_ptr<TransferBatch> prepare(TensorStore& store, std::vector<Transfer> transfers) override;
  const std::vector<std::vector<RehearsedTransfer>>& batches() const { return batches_; }

 private:
  std::unique_ptr<Communicator> planned_;
  Tell tell_;
  std::vector<std::vector<RehearsedTransfer>> batches_;
};

}  // namespace mulligan
