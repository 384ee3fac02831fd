// Measures seconds per all_reduce between ranks that are threads of this process. A person starts it:
//   communicator_bench [RANKS] [PLUGIN]
// It sends one tensor of several sizes. Then it sends a hundred small ones in one batch and in a hundred, which shows the gain of
// packing.
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "tests/unit/communicator_worlds.h"

namespace mulligan {
namespace {

double seconds_of(int turns, const std::function<void()>& body) {
  body();  // once for nothing
  const auto start = std::chrono::steady_clock::now();
  for (int turn = 0; turn < turns; ++turn) body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / turns;
}

void run_batch(TransferBatch& batch) {
  batch.submit();
  batch.join();
}

void measure(const CommunicatorWorld& world, HostGroup& group) {
  const std::unique_ptr<Backend> backend = make_backend(world);
  TensorStore store(*backend);
  const std::unique_ptr<Communicator> communicator = make_communicator(world, group, *backend);
  const auto report = [&](const char* what, std::int64_t bytes, double seconds) {
    if (group.rank() == 0)
      std::printf("%-28s %10lld bytes %10.3f ms\n", what, static_cast<long long>(bytes), 1e3 * seconds);
  };
  for (const std::int64_t count : {256, 4096, 65536, 1 << 20, 4 << 20, 16 << 20}) {
    const std::string name = std::to_string(count);
    store.create(name, TensorType(MLG_F32, {count}));
    const auto batch = communicator->prepare(store, {{Collective::all_reduce, name, name, count, 0}});
    report("one all_reduce", count * 4, seconds_of(count > (1 << 20) ? 10 : 100, [&] { run_batch(*batch); }));
  }
  constexpr int kMany = 100;
  constexpr std::int64_t kSmall = 512;
  std::vector<Transfer> transfers;
  std::vector<std::unique_ptr<TransferBatch>> single;
  for (int i = 0; i < kMany; ++i) {
    const std::string name = "small" + std::to_string(i);
    store.create(name, TensorType(MLG_F32, {kSmall}));
    transfers.push_back({Collective::all_reduce, name, name, kSmall, 0});
    single.push_back(communicator->prepare(store, {transfers.back()}));
  }
  const auto together = communicator->prepare(store, transfers);
  report("100 small ones, one batch", kMany * kSmall * 4, seconds_of(20, [&] { run_batch(*together); }));
  report("100 small ones, 100 batches", kMany * kSmall * 4, seconds_of(5, [&] {
           for (const auto& batch : single) batch->submit();
           for (const auto& batch : single) batch->join();
         }));
  group.barrier();
}

}  // namespace
}  // namespace mulligan

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  const std::string plugin = argc > 2 ? argv[2] : "gloo";
  const mulligan::CommunicatorWorld world{plugin, plugin == "nccl" ? "stub" : "cpu", ranks};
  int failed = 0;
  for (const std::string& sentence :
       mulligan::run_ranks(ranks, [&](mulligan::HostGroup& group) { mulligan::measure(world, group); })) {
    if (sentence.empty()) continue;
    std::fprintf(stderr, "%s\n", sentence.c_str());
    failed = 1;
  }
  return failed;
}
