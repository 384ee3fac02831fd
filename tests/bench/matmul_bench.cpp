// GFLOP/s of the cpu backend's matmul in every layout that training uses:
//   forward   y[T, F]  = x[T, d] W[F, d]^T
//   input     dx[T, d] = dy[T, F] W[F, d]
//   weight    dW[F, d] += dy[T, F]^T x[T, d]   (f32 result, added to)
//   polynomial c = -2 a a + 1.5 c for a stack of square matrices (Muon's Newton-Schulz steps)
//   symmetric  the same as symmetric_matmul (GFLOP/s as if everything were computed, so that both compare)
#include <benchmark/benchmark.h>

#include "tests/bench/bench_backend.h"

namespace mulligan::bench {
namespace {

enum class Product { forward, input, weight };

void run(benchmark::State& state, Product product, mlg_dtype dtype) {
  const std::int64_t t = state.range(0), d = state.range(1), f = state.range(2);
  const Operand x{dtype, {t, d}}, w{dtype, {f, d}}, y{dtype, {t, f}}, dw{MLG_F32, {f, d}};
  std::vector<Operand> operands;
  std::vector<mlg_attribute> attributes;
  if (product == Product::forward) {
    operands = {x, w, y};
    attributes = {{"transpose_a", 0}, {"transpose_b", 1}, {"alpha", 1}, {"beta", 0}};
  } else if (product == Product::input) {
    operands = {y, w, x};
    attributes = {{"transpose_a", 0}, {"transpose_b", 0}, {"alpha", 1}, {"beta", 0}};
  } else {
    operands = {y, x, dw};
    attributes = {{"transpose_a", 1}, {"transpose_b", 0}, {"alpha", 1}, {"beta", 1}};
  }
  BenchCall call("matmul", operands, attributes);
  call.measure(state, 2.0 * static_cast<double>(t * d * f));
}

void polynomial(benchmark::State& state, const char* kernel, mlg_dtype dtype) {
  const std::int64_t batch = state.range(0), n = state.range(1);
  const Operand matrices{dtype, {batch, n, n}};
  BenchCall call(kernel, {matrices, matrices, matrices},
                 {{"transpose_a", 0}, {"transpose_b", 0}, {"alpha", -2}, {"beta", 1.5}});
  call.measure(state, 2.0 * static_cast<double>(batch * n * n * n));
}

void shapes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"T", "d", "F"})
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond)
      ->MinWarmUpTime(0.1)
      ->MinTime(0.3);
  const std::vector<std::vector<std::int64_t>> sizes = {
      {4096, 512, 2048}, {4096, 2048, 512}, {4096, 512, 512}, {4096, 512, 256}, {4096, 512, 8192},
      {4096, 512, 8},    {4096, 192, 768},  {4096, 192, 192}, {4096, 192, 2048}};
  for (const auto& size : sizes) b->Args(size);
}

BENCHMARK_CAPTURE(run, forward_f32, Product::forward, MLG_F32)->Apply(shapes);
BENCHMARK_CAPTURE(run, input_f32, Product::input, MLG_F32)->Apply(shapes);
BENCHMARK_CAPTURE(run, weight_f32, Product::weight, MLG_F32)->Apply(shapes);
BENCHMARK_CAPTURE(run, forward_bf16, Product::forward, MLG_BF16)->Apply(shapes);
BENCHMARK_CAPTURE(run, input_bf16, Product::input, MLG_BF16)->Apply(shapes);
BENCHMARK_CAPTURE(run, weight_bf16, Product::weight, MLG_BF16)->Apply(shapes);

void stacks(benchmark::internal::Benchmark* b) {
  b->ArgNames({"batch", "n"})->UseRealTime()->Unit(benchmark::kMillisecond)->MinWarmUpTime(0.1)->MinTime(0.3);
  b->Args({11, 512})->Args({22, 256})->Args({6, 192})->Args({12, 128});
}
BENCHMARK_CAPTURE(polynomial, f32, "matmul", MLG_F32)->Apply(stacks);
BENCHMARK_CAPTURE(polynomial, symmetric_f32, "symmetric_matmul", MLG_F32)->Apply(stacks);
BENCHMARK_CAPTURE(polynomial, bf16, "matmul", MLG_BF16)->Apply(stacks);
BENCHMARK_CAPTURE(polynomial, symmetric_bf16, "symmetric_matmul", MLG_BF16)->Apply(stacks);

}  // namespace
}  // namespace mulligan::bench
