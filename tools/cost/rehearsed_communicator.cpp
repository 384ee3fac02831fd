#include "tools/cost/rehearsed_communicator.h"

#include <utility>

namespace mulligan {
namespace {

class RehearsedBatch final : public TransferBatch {
 public:
  RehearsedBatch(const RehearsedCommunicator::Tell& tell, std::size_t number)
      : tell_(tell), number_(number) {}
  void submit() override { tell_(StepEvent::Kind::submit, number_); }
  void join() override { tell_(StepEvent::Kind::join, number_); }

 private:
  const RehearsedCommunicator::Tell& tell_;
  std::size_t number_;
};

}  // namespace

RehearsedCommunicator::RehearsedCommunicator(int ranks, Tell tell)
    : planned_(make_planned_communicator(ranks)), tell_(std::move(tell)) {}

HostGroup& RehearsedCommunicator::group() {
  return planned_->group();
}

std::unique_ptr<TransferBatch> RehearsedCommunicator::prepare(TensorStore& store,
                                                              std::vector<Transfer> transfers) {
  std::vector<RehearsedTransfer> batch;
  for (const Transfer& transfer : transfers) {
    batch.push_back(
        {transfer.kind, transfer.from, transfer.count * dtype_size(store.type(transfer.from).dtype)});
  }
  batches_.push_back(std::move(batch));
  return std::make_unique<RehearsedBatch>(tell_, batches_.size() - 1);
}

}  // namespace mulligan
