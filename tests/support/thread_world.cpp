#include "tests/support/thread_world.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <mulligan/kernel.hpp>
#include <mutex>

#include "framework/core/error.h"

namespace mulligan {

class ThreadWorld::Member final : public Communicator {
 public:
  Member(ThreadWorld& world, int rank) : world_(world), rank_(rank) {}

  HostGroup& group() override { return world_.groups_.group(rank_); }

  std::unique_ptr<TransferBatch> prepare(TensorStore& store, std::vector<Transfer> transfers) override {
    return std::make_unique<Batch>(*this, store, std::move(transfers));
  }

 private:
  class Batch final : public TransferBatch {
   public:
    Batch(Member& member, TensorStore& store, std::vector<Transfer> transfers)
        : member_(member), store_(store), transfers_(std::move(transfers)) {}
    void submit() override {
      for (const Transfer& transfer : transfers_) member_.move(store_, transfer);
    }
    void join() override {}

   private:
    Member& member_;
    TensorStore& store_;
    std::vector<Transfer> transfers_;
  };

  void move(TensorStore& store, const Transfer& transfer) {
    const DType dtype = store.type(transfer.from).dtype;
    const auto share = static_cast<std::size_t>(transfer.count * dtype_size(dtype));
    const auto size = static_cast<std::size_t>(world_.size_), rank = static_cast<std::size_t>(rank_);
    const auto skipped = static_cast<std::size_t>(transfer.offset * dtype_size(dtype));
    // In place a rank's share lies at its place in the tensor.
    const std::size_t place = transfer.from == transfer.to ? rank * share : 0;
    world_.shown_[rank] = static_cast<const std::byte*>(store.address(transfer.from)) +
                          (transfer.kind == Collective::all_gather ? place : skipped);
    group().barrier();
    std::vector<std::vector<std::byte>> seen;  // what concerns this rank of each rank's `from`
    for (std::size_t peer = 0; peer < size; ++peer) {
      const bool dealt =
          transfer.kind == Collective::reduce_scatter || transfer.kind == Collective::all_to_all;
      const auto* from = static_cast<const std::byte*>(world_.shown_[peer]) + (dealt ? rank * share : 0);
      seen.emplace_back(from, from + share);
    }
    group().barrier();
    std::vector<std::byte> result;
    switch (transfer.kind) {
      case Collective::broadcast:
        result = seen[static_cast<std::size_t>(transfer.root)];
        break;
      case Collective::all_gather:
      case Collective::all_to_all:
        for (const auto& part : seen) result.insert(result.end(), part.begin(), part.end());
        break;
      case Collective::all_reduce:
      case Collective::reduce_scatter:
        result = sum(dtype, seen);
        break;
      case Collective::reduce:
        result = rank == static_cast<std::size_t>(transfer.root) ? sum(dtype, seen) : seen[rank];
        break;
    }
    std::ranges::copy(result, static_cast<std::byte*>(store.address(transfer.to)) +
                                  (transfer.kind == Collective::reduce_scatter ? place : skipped));
  }

  static std::vector<std::byte> sum(DType dtype, const std::vector<std::vector<std::byte>>& parts) {
    std::vector<std::byte> result = parts[0];
    const auto add_as = [&]<typename T>(T) {
      const std::size_t count = result.size() / sizeof(T);
      for (std::size_t part = 1; part < parts.size(); ++part) {
        for (std::size_t i = 0; i < count; ++i) {
          T a, b;
          std::memcpy(&a, result.data() + i * sizeof(T), sizeof(T));
          std::memcpy(&b, parts[part].data() + i * sizeof(T), sizeof(T));
          a = static_cast<T>(a + b);
          std::memcpy(result.data() + i * sizeof(T), &a, sizeof(T));
        }
      }
    };
    if (dtype == MLG_F32) {
      add_as(float{});
    } else if (dtype == MLG_F64) {
      add_as(double{});
    } else if (dtype == MLG_BF16) {
      add_as(sdk::bfloat16{});
    } else {
      throw run_error("ranks do not add up {}.", dtype_name(dtype));
    }
    return result;
  }

  ThreadWorld& world_;
  int rank_;
};

ThreadWorld::ThreadWorld(int size) : size_(size), groups_(size), shown_(static_cast<std::size_t>(size)) {
  for (int rank = 0; rank < size; ++rank) members_.push_back(std::make_unique<Member>(*this, rank));
}

ThreadWorld::~ThreadWorld() = default;

Communicator& ThreadWorld::rank(int rank) {
  return *members_[static_cast<std::size_t>(rank)];
}

void ThreadWorld::run(const std::function<void(int rank, Communicator&)>& body) {
  std::mutex mutex;
  std::exception_ptr first;
  run_ranks(groups_, size_, [&](HostGroup& group) {
    try {
      body(group.rank(), rank(group.rank()));
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!first) first = std::current_exception();
      throw;
    }
  });
  if (first) std::rethrow_exception(first);
}

}  // namespace mulligan
