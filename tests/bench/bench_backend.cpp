#include "tests/bench/bench_backend.h"

#include <dlfcn.h>
#include <time.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace mulligan::bench {
namespace {

void require(const char* error) {
  if (error == nullptr) return;
  std::fprintf(stderr, "%s\n", error);
  std::exit(1);
}

struct Loaded {
  const mlg_backend_table* table;
  void* instance = nullptr;

  Loaded() {
    void* library = dlopen(MULLIGAN_BENCH_CPU_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) require(dlerror());
    table = reinterpret_cast<const mlg_backend_table*>(
        reinterpret_cast<mlg_plugin_function>(dlsym(library, "mlg_plugin"))());
    mlg_config
        config{};  // of the plugin's keys all that it reads: `threads`, and `batch_invariant`, which is off
    config.get = [](const void*, const char*, std::int32_t type) -> mlg_setting {
      const char* text = type == MLG_KEY_INT ? std::getenv("MULLIGAN_BENCH_THREADS") : nullptr;
      return {text == nullptr ? 0 : std::atoi(text), 0, "", nullptr, 0};
    };
    static mlg_running running{};
    static const mlg_host host{[](std::int32_t, const char*) {}, &running};
    require(table->create(&host, &config, &instance));
  }
};

Loaded& backend() {
  static Loaded loaded;
  return loaded;
}

// CPU time of all threads of this process.
double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Bytes of an operand's contents.
std::vector<std::byte> contents(const Operand& operand) {
  std::size_t count = 1;
  for (const std::int64_t extent : operand.shape) count *= static_cast<std::size_t>(extent);
  std::vector<std::byte> bytes(count * (operand.dtype == MLG_BF16 ? 2 : operand.dtype == MLG_F64 ? 8 : 4));
  if (operand.dtype == MLG_I32) {
    std::memcpy(bytes.data(), operand.values.data(), bytes.size());
    return bytes;
  }
  std::uint32_t state = 12345;
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    const float value = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31f;
    const auto word = std::bit_cast<std::uint32_t>(value);
    const auto half = static_cast<std::uint16_t>(word >> 16);
    if (operand.dtype == MLG_BF16) {
      std::memcpy(&bytes[2 * i], &half, 2);
    } else {
      std::memcpy(&bytes[4 * i], &word, 4);
    }
  }
  return bytes;
}

}  // namespace

BenchCall::BenchCall(const std::string& kernel, const std::vector<Operand>& operands,
                     const std::vector<mlg_attribute>& attributes) {
  const Loaded& b = backend();
  std::vector<mlg_tensor> tensors;
  for (const Operand& operand : operands) {
    mlg_tensor tensor{nullptr, operand.dtype, static_cast<std::int32_t>(operand.shape.size()), {1, 1, 1, 1}};
    std::copy(operand.shape.begin(), operand.shape.end(), tensor.shape);
    tensors.push_back(tensor);
    const std::vector<std::byte> bytes = contents(operand);
    require(b.table->allocate(b.instance, bytes.size(), &memory_.emplace_back()));
    require(b.table->upload(b.instance, memory_.back(), bytes.data(), bytes.size()));
  }
  const mlg_call call{kernel.c_str(), tensors.data(), static_cast<std::uint32_t>(tensors.size()),
                      attributes.data(), static_cast<std::uint32_t>(attributes.size())};
  require(b.table->prepare(b.instance, &call, &prepared_, &workspace_bytes_));
  require(b.table->allocate(b.instance, workspace_bytes_, &workspace_));
  require(b.table->bind(b.instance, prepared_, memory_.data(), workspace_));
}

BenchCall::~BenchCall() {
  const Loaded& b = backend();
  b.table->release(b.instance, prepared_);
  b.table->free(b.instance, workspace_);
  for (void* address : memory_) b.table->free(b.instance, address);
}

void BenchCall::run() {
  require(backend().table->run(backend().instance, &prepared_, 1));
}

void BenchCall::measure(benchmark::State& state, double flops) {
  using Clock = std::chrono::steady_clock;
  double fastest = HUGE_VAL;
  const double cpu_start = cpu_seconds();
  for (auto _ : state) {
    const auto start = Clock::now();
    run();
    fastest = std::min(fastest, std::chrono::duration<double>(Clock::now() - start).count());
  }
  state.counters["GFLOP/s"] =
      benchmark::Counter(flops * 1e-9 * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
  state.counters["core_GFLOP/s"] =
      flops * 1e-9 * static_cast<double>(state.iterations()) / (cpu_seconds() - cpu_start);
  state.counters["best_GFLOP/s"] = flops * 1e-9 / fastest;
  state.counters["workspace_MB"] = static_cast<double>(workspace_bytes_) * 1e-6;
}

}  // namespace mulligan::bench
