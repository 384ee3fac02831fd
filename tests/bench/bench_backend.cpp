#include "tests/bench/bench_backend.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <mulligan/kernel.hpp>
#include <span>

#include "tests/support/plugins.h"

namespace mulligan::bench {
namespace {

Backend& backend() {
  static const std::unique_ptr<Backend> made = [] {
    const char* threads = std::getenv("MULLIGAN_BENCH_THREADS");
    return make_cpu_backend(threads == nullptr ? 0 : std::atoi(threads));
  }();
  return *made;
}

// CPU time of all threads of this process.
double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> contents(const Operand& operand) {
  if (operand.dtype == MLG_I32) return bytes_of(operand.values);
  std::size_t count = 1;
  for (const std::int64_t extent : operand.shape) count *= static_cast<std::size_t>(extent);
  std::vector<float> values(count);
  std::uint32_t state = 12345;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31f;
  }
  if (operand.dtype == MLG_F32) return bytes_of(values);
  return bytes_of(std::vector<sdk::bfloat16>(values.begin(), values.end()));
}

}  // namespace

BenchCall::BenchCall(const std::string& kernel, const std::vector<Operand>& operands,
                     const std::vector<mlg_attribute>& attributes) {
  std::vector<mlg_tensor> tensors;
  std::vector<void*> addresses;
  for (const Operand& operand : operands) {
    mlg_tensor tensor{nullptr, operand.dtype, static_cast<std::int32_t>(operand.shape.size()), {1, 1, 1, 1}};
    std::copy(operand.shape.begin(), operand.shape.end(), tensor.shape);
    tensors.push_back(tensor);
    const std::vector<std::byte> bytes = contents(operand);
    memory_.push_back(backend().allocate(bytes.size()));
    addresses.push_back(memory_.back().address());
    backend().upload(addresses.back(), bytes.data(), bytes.size());
  }
  prepared_ = backend().prepare({kernel.c_str(), tensors.data(), static_cast<std::uint32_t>(tensors.size()),
                                 attributes.data(), static_cast<std::uint32_t>(attributes.size())});
  workspace_ = backend().allocate(prepared_.workspace_bytes());
  prepared_.bind(addresses.data(), workspace_.address());
}

void BenchCall::measure(benchmark::State& state, double flops) {
  using Clock = std::chrono::steady_clock;
  double fastest = HUGE_VAL;
  void* const handle = prepared_.handle();
  const double cpu_start = cpu_seconds();
  for (auto _ : state) {
    const auto start = Clock::now();
    backend().run(std::span(&handle, 1));
    fastest = std::min(fastest, std::chrono::duration<double>(Clock::now() - start).count());
  }
  state.counters["GFLOP/s"] =
      benchmark::Counter(flops * 1e-9 * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
  state.counters["core_GFLOP/s"] =
      flops * 1e-9 * static_cast<double>(state.iterations()) / (cpu_seconds() - cpu_start);
  state.counters["best_GFLOP/s"] = flops * 1e-9 / fastest;
  state.counters["workspace_MB"] = static_cast<double>(prepared_.workspace_bytes()) * 1e-6;
}

}  // namespace mulligan::bench
