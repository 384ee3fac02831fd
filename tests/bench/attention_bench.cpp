// GFLOP/s of attention, counting the causal half only: 2 matmuls forward, 5 backward (the usual accounting;
// what the kernels compute again or mask away is not counted).
#include <benchmark/benchmark.h>

#include <cmath>

#include "tests/bench/bench_backend.h"

namespace mulligan::bench {
namespace {

void run(benchmark::State& state, bool backward, mlg_dtype dtype, bool stable = false) {
  const std::int64_t t = state.range(0), length = state.range(1), heads = state.range(2), kv = state.range(3),
                     h = state.range(4);
  Operand cu{MLG_I32, {t / length + 1}};
  for (std::int64_t at = 0; at <= t; at += length) cu.values.push_back(static_cast<std::int32_t>(at));
  const Operand q{dtype, {t, heads, h}}, k{dtype, {t, kv, h}}, lse{MLG_F32, {t, heads}};
  const mlg_attribute scale{"softmax_scale", 1.0 / std::sqrt(static_cast<double>(h))};
  std::vector<Operand> operands = {q, k, k, cu, q, lse};
  std::vector<mlg_attribute> attributes = {scale};
  if (backward) {
    operands = {q, k, k, cu, q, lse, q, q, k, k};
    attributes = {scale, {"accumulate_dq", 0}, {"accumulate_dk", 0}, {"accumulate_dv", 0}};
  }
  if (stable) {
    attributes.insert(attributes.end(), {{"beta", 2},
                                         {"tolerance", 1e-3},
                                         {"min_repeats", 2},
                                         {"cap", 20},
                                         {"round_normalizer", 0},
                                         {"round_sums", 0}});
  }
  BenchCall call(backward ? "attention_bwd"
                 : stable ? "attention_stable_fwd"
                          : "attention_fwd",
                 operands, attributes);
  const double pairs = static_cast<double>(t) * static_cast<double>(length + 1) / 2;
  call.measure(state, (backward ? 10.0 : 4.0) * pairs * static_cast<double>(heads * h));
}

void shapes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"T", "len", "H", "K", "h"})
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond)
      ->MinWarmUpTime(0.1)
      ->MinTime(0.3);
  b->Args({4096, 2048, 8, 4, 64})->Args({4096, 512, 8, 4, 64})->Args({4096, 64, 8, 4, 64});
  b->Args({4096, 2048, 8, 8, 64})->Args({4096, 1024, 6, 3, 32})->Args({4096, 2048, 4, 2, 128});
  b->Args({2048, 2048, 8, 4, 50});
}

BENCHMARK_CAPTURE(run, forward_f32, false, MLG_F32)->Apply(shapes);
BENCHMARK_CAPTURE(run, backward_f32, true, MLG_F32)->Apply(shapes);
BENCHMARK_CAPTURE(run, forward_bf16, false, MLG_BF16)->Apply(shapes);
BENCHMARK_CAPTURE(run, forward_stable_bf16, false, MLG_BF16, true)->Apply(shapes);
BENCHMARK_CAPTURE(run, backward_bf16, true, MLG_BF16)->Apply(shapes);

}  // namespace
}  // namespace mulligan::bench
