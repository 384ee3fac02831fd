#include "tests/support/thread_world.h"

#include <bit>
#include <cstring>
#include <exception>
#include <thread>

#include "framework/core/error.h"

namespace mulligan {

namespace {

float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}
// Of a finite value, to the nearest, ties to even.
std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

}  // namespace

class ThreadWorld::Member final : public Communicator, public HostGroup {
 public:
  Member(ThreadWorld& world, int rank) : world_(world), rank_(rank) {}

  HostGroup& group() override { return *this; }
  int rank() const override { return rank_; }
  int world_size() const override { return world_.size_; }
  int local_rank() const override { return rank_; }
  int local_size() const override { return world_.size_; }

  std::vector<std::string> all_gather(std::string_view bytes) override {
    own().bytes = bytes;
    world_.meet();
    std::vector<std::string> all;
    for (const Shown& shown : world_.shown_) all.push_back(shown.bytes);
    world_.meet();
    return all;
  }
  std::string broadcast(std::string_view bytes) override { return all_gather(bytes)[0]; }
  void barrier() override { world_.meet(); }
  void put(const std::string& key, std::string_view value) override {
    const std::lock_guard lock(world_.mutex_);
    world_.values_[key] = value;
  }
  std::string get(const std::string& key, double) override {
    while (true) {
      const std::lock_guard lock(world_.mutex_);
      const auto found = world_.values_.find(key);
      if (found != world_.values_.end()) return found->second;
    }
  }

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

  Shown& own() { return world_.shown_[static_cast<std::size_t>(rank_)]; }

  void move(TensorStore& store, const Transfer& transfer) {
    const DType dtype = store.type(transfer.from).dtype;
    const auto share = static_cast<std::size_t>(transfer.count * dtype_size(dtype));
    const auto size = static_cast<std::size_t>(world_.size_), rank = static_cast<std::size_t>(rank_);
    own().address = store.address(transfer.from);
    world_.meet();
    std::vector<std::vector<std::byte>> seen;  // what concerns this rank of each rank's `from`
    for (std::size_t peer = 0; peer < size; ++peer) {
      const bool dealt =
          transfer.kind == Collective::reduce_scatter || transfer.kind == Collective::all_to_all;
      const auto* from =
          static_cast<const std::byte*>(world_.shown_[peer].address) + (dealt ? rank * share : 0);
      seen.emplace_back(from, from + share);
    }
    world_.meet();
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
    }
    std::memcpy(store.address(transfer.to), result.data(), result.size());
  }

  static std::vector<std::byte> sum(DType dtype, const std::vector<std::vector<std::byte>>& parts) {
    std::vector<std::byte> result = parts[0];
    const auto add_as = [&]<typename T>(T, auto&& plus) {
      const std::size_t count = result.size() / sizeof(T);
      for (std::size_t part = 1; part < parts.size(); ++part) {
        for (std::size_t i = 0; i < count; ++i) {
          T a, b;
          std::memcpy(&a, result.data() + i * sizeof(T), sizeof(T));
          std::memcpy(&b, parts[part].data() + i * sizeof(T), sizeof(T));
          a = plus(a, b);
          std::memcpy(result.data() + i * sizeof(T), &a, sizeof(T));
        }
      }
    };
    if (dtype == MLG_F32) {
      add_as(float{}, [](float a, float b) { return a + b; });
    } else if (dtype == MLG_F64) {
      add_as(double{}, [](double a, double b) { return a + b; });
    } else if (dtype == MLG_BF16) {
      add_as(std::uint16_t{},
             [](std::uint16_t a, std::uint16_t b) { return to_bf16(from_bf16(a) + from_bf16(b)); });
    } else {
      throw run_error("ranks do not add up {}.", dtype_name(dtype));
    }
    return result;
  }

  ThreadWorld& world_;
  int rank_;
};

ThreadWorld::ThreadWorld(int size) : size_(size), shown_(static_cast<std::size_t>(size)), barrier_(size) {
  for (int rank = 0; rank < size; ++rank) members_.push_back(std::make_unique<Member>(*this, rank));
}

ThreadWorld::~ThreadWorld() = default;

Communicator& ThreadWorld::rank(int rank) {
  return *members_[static_cast<std::size_t>(rank)];
}

void ThreadWorld::meet() {
  barrier_.arrive_and_wait();
  const std::lock_guard lock(mutex_);
  if (failed_) throw Error(ExitCode::peer_failed, "another rank failed.");
}

void ThreadWorld::run(const std::function<void(int rank, Communicator&)>& body) {
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (int number = 0; number < size_; ++number) {
    threads.emplace_back([&, number] {
      try {
        body(number, rank(number));
      } catch (...) {
        {
          const std::lock_guard lock(mutex_);
          if (!failed_) first = std::current_exception();
          failed_ = true;
        }
        barrier_.arrive_and_drop();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace mulligan
