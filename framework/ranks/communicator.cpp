#include "framework/ranks/communicator.h"

#include <fmt/format.h>

#include <stdexcept>

namespace mulligan {
namespace {

class SelfBatch final : public TransferBatch {
 public:
  void submit() override {}
  void join() override {}
};

class SelfCommunicator final : public Communicator {
 public:
  explicit SelfCommunicator(int world_size) : group_(make_single_group(world_size)) {}
  HostGroup& group() override { return *group_; }
  // What could not work with more ranks does not work here either.
  std::unique_ptr<TransferBatch> prepare(TensorStore& store, std::vector<Transfer> transfers) override {
    if (world_size() > 1) return std::make_unique<SelfBatch>();
    for (const Transfer& transfer : transfers) {
      transfer_extent(store, transfer, 0, 1);
      if (transfer.from == transfer.to) continue;
      throw std::logic_error(
          fmt::format("one rank moves nothing from '{}' to '{}'", transfer.from, transfer.to));
    }
    return std::make_unique<SelfBatch>();
  }

 private:
  std::unique_ptr<HostGroup> group_;
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

std::unique_ptr<Communicator> make_self_communicator(int world_size) {
  return std::make_unique<SelfCommunicator>(world_size);
}

TransferExtent transfer_extent(const TensorStore& store, const Transfer& transfer, int rank, int world_size) {
  const DType dtype = store.type(transfer.from).dtype;
  const Collective kind = transfer.kind;
  const bool reduces =
      kind == Collective::all_reduce || kind == Collective::reduce_scatter || kind == Collective::reduce;
  const bool whole =
      kind == Collective::all_reduce || kind == Collective::broadcast || kind == Collective::reduce;
  if (reduces && dtype != MLG_F32 && dtype != MLG_F64 && dtype != MLG_BF16) {
    throw std::logic_error(fmt::format("a sum over ranks of '{}': it is {}, not f32, f64 or bf16",
                                       transfer.from, dtype_name(dtype)));
  }
  const bool in_place = transfer.from == transfer.to;
  if (kind == Collective::all_to_all && in_place && world_size > 1) {
    throw std::logic_error(fmt::format("all_to_all of '{}' cannot be done in place", transfer.from));
  }
  if ((kind == Collective::reduce && !in_place) || transfer.offset < 0 || (transfer.offset > 0 && !whole)) {
    throw std::logic_error(
        fmt::format("of '{}' a part is to be moved that this transfer has not", transfer.from));
  }
  const auto share = static_cast<std::size_t>(transfer.count) * dtype_size(dtype);
  const std::size_t all = share * static_cast<std::size_t>(world_size);
  const std::size_t place = in_place ? share * static_cast<std::size_t>(rank) : 0;
  const std::size_t skipped = static_cast<std::size_t>(transfer.offset) * dtype_size(dtype);
  TransferExtent extent{skipped, share, skipped, share};
  if (kind == Collective::reduce_scatter) extent = {0, all, place, share};
  if (kind == Collective::all_gather) extent = {place, share, 0, all};
  if (kind == Collective::all_to_all) extent = {0, all, 0, all};
  const auto room = [&](const std::string& name) {
    return static_cast<std::size_t>(store.reserved_bytes(name));
  };
  if (transfer.count < 0 || store.type(transfer.to).dtype != dtype || transfer.root < 0 ||
      transfer.root >= world_size || extent.from_offset + extent.from_bytes > room(transfer.from) ||
      extent.to_offset + extent.to_bytes > room(transfer.to)) {
    throw std::logic_error(fmt::format("{} elements cannot go from '{}' ({}) to '{}' ({}) among {} ranks",
                                       transfer.count, transfer.from, store.type(transfer.from).text(),
                                       transfer.to, store.type(transfer.to).text(), world_size));
  }
  return extent;
}

const char* collective_name(Collective kind) {
  constexpr const char* names[] = {"all_reduce", "reduce_scatter", "all_gather",
                                   "all_to_all", "broadcast",      "reduce"};
  return names[static_cast<std::size_t>(kind)];
}

}  // namespace mulligan
