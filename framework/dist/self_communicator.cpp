#include <fmt/format.h>

#include <stdexcept>

#include "framework/dist/communicator.h"

namespace mulligan {
namespace {

// The copies of a batch. What could not work with more ranks does not work here either.
class SelfBatch final : public TransferBatch {
 public:
  SelfBatch(TensorStore& store, const std::vector<Transfer>& transfers) : backend_(store.backend()) {
    for (const Transfer& transfer : transfers) {
      require_possible(store, transfer);
      if (transfer.from == transfer.to) continue;
      const auto bytes =
          static_cast<std::size_t>(transfer.count) * dtype_size(store.type(transfer.from).dtype);
      copies_.push_back({store.address(transfer.to), store.address(transfer.from), bytes});
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
  static void require_possible(const TensorStore& store, const Transfer& transfer) {
    const DType dtype = store.type(transfer.from).dtype;
    const auto bytes = transfer.count * static_cast<std::int64_t>(dtype_size(dtype));
    const bool reduces =
        transfer.kind == Collective::all_reduce || transfer.kind == Collective::reduce_scatter;
    if (reduces && dtype != MLG_F32 && dtype != MLG_F64 && dtype != MLG_BF16) {
      throw std::logic_error(fmt::format("a sum over ranks of '{}': it is {}, not f32, f64 or bf16",
                                         transfer.from, dtype_name(dtype)));
    }
    if (store.type(transfer.to).dtype != dtype || transfer.root != 0 ||
        bytes > store.reserved_bytes(transfer.from) || bytes > store.reserved_bytes(transfer.to)) {
      throw std::logic_error(fmt::format("{} elements cannot go from '{}' ({}) to '{}' ({})", transfer.count,
                                         transfer.from, store.type(transfer.from).text(), transfer.to,
                                         store.type(transfer.to).text()));
    }
  }
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

void Communicator::barrier(TensorStore& store) {
  store.backend().synchronize();
  group().barrier();
}

std::unique_ptr<Communicator> make_self_communicator() {
  return std::make_unique<SelfCommunicator>();
}

}  // namespace mulligan
