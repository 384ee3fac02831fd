#include "framework/ranks/communicator.h"

namespace mulligan {
namespace {

// The copies of a batch. What could not work with more ranks does not work here either.
class SelfBatch final : public TransferBatch {
 public:
  SelfBatch(TensorStore& store, const std::vector<Transfer>& transfers) : backend_(store.backend()) {
    for (const Transfer& transfer : transfers) {
      const std::size_t bytes = transfer_extent(store, transfer, 0, 1).from_bytes;
      const Copy copy{store.address(transfer.to), store.address(transfer.from), bytes};
      if (copy.to != copy.from) copies_.push_back(copy);
    }
  }
  void submit() override {
    for (const Copy& copy : copies_) backend_.copy(copy.to, copy.from, copy.bytes);
  }
  void join() override {}

 private:
  struct Copy {
    void *to, *from;
    std::size_t bytes;
  };
  Backend& backend_;
  std::vector<Copy> copies_;
};

class SelfCommunicator final : public Communicator {
 public:
  HostGroup& group() override { return *group_; }
  std::unique_ptr<TransferBatch> prepare(TensorStore& store, std::vector<Transfer> transfers) override {
    return std::make_unique<SelfBatch>(store, transfers);
  }

 private:
  std::unique_ptr<HostGroup> group_ = make_single_group();
};

}  // namespace

void Communicator::finish(TensorStore& store) {
  store.backend().synchronize();
  transfers();
}

void Communicator::barrier(TensorStore& store) {
  finish(store);
  group().barrier();
}

std::unique_ptr<Communicator> make_self_communicator() {
  return std::make_unique<SelfCommunicator>();
}

}  // namespace mulligan
