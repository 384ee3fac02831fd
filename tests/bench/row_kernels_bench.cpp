// GB/s of the row, element and reduction kernels: bytes that a call must read and write at least, by its
// time. Shapes of the record model: T = 8192 tokens, d = 512, 8 heads (4 for keys and values) of 64, V =
// 8192, F = 2048. `cast f32 -> f32` is a plain copy on the same threads: the yardstick.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>

#include "tests/bench/bench_backend.h"

namespace mulligan::bench {
namespace {

// MULLIGAN_BENCH_TOKENS: fewer tokens, to see what the kernels do when the data fit in a cache.
const std::int64_t T =
    std::getenv("MULLIGAN_BENCH_TOKENS") ? std::atoll(std::getenv("MULLIGAN_BENCH_TOKENS")) : 8192;
constexpr std::int64_t d = 512, H = 8, K = 4, h = 64, V = 8192, F = 2048;
constexpr double kEps = 1.1920928955078125e-7;

std::size_t bytes_of(const Operand& operand) {
  std::size_t bytes = operand.dtype == MLG_BF16 || operand.dtype == MLG_F16 ? 2
                      : operand.dtype == MLG_F64                            ? 8
                                                                            : 4;
  for (const std::int64_t extent : operand.shape) bytes *= static_cast<std::size_t>(extent);
  return operand.dtype == MLG_ABSENT ? 0 : bytes;
}

struct Subject {
  std::string kernel;
  std::vector<Operand> operands;
  std::vector<mlg_attribute> attributes = {};
  // Operands that are read and written (counted twice); the others count once.
  std::vector<std::size_t> updated = {};
  std::string remark = "";
};

void measure(benchmark::State& state, const Subject& subject) {
  BenchCall call(subject.kernel, subject.operands, subject.attributes);
  std::size_t bytes = 0;
  for (const Operand& operand : subject.operands) bytes += bytes_of(operand);
  for (const std::size_t index : subject.updated) bytes += bytes_of(subject.operands[index]);
  using Clock = std::chrono::steady_clock;
  double fastest = HUGE_VAL;
  const std::clock_t cpu_start = std::clock();
  for (auto _ : state) {
    const auto start = Clock::now();
    call.run();
    fastest = std::min(fastest, std::chrono::duration<double>(Clock::now() - start).count());
  }
  const double cpu_seconds = static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC;
  const double gigabytes = static_cast<double>(bytes) * 1e-9,
               all = gigabytes * static_cast<double>(state.iterations());
  state.counters["GB/s"] = benchmark::Counter(all, benchmark::Counter::kIsRate);
  // Where others use the machine meanwhile: per second of CPU time (one thread), and of
  // the fastest run.
  state.counters["core_GB/s"] = all / cpu_seconds;
  state.counters["best_GB/s"] = gigabytes / fastest;
}

// Ids as a tokenizer gives them: small ones far more often.
Operand token_ids() {
  Operand ids{MLG_I32, {T}};
  std::uint64_t state = 1;
  for (std::int64_t t = 0; t < T; ++t) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    const double u = static_cast<double>(state >> 11) * 0x1p-53;
    ids.values.push_back(static_cast<std::int32_t>(static_cast<double>(V) * u * u * u));
  }
  return ids;
}

std::vector<Subject> subjects(mlg_dtype a) {
  const Operand x{a, {T, d}}, mlp{a, {T, F}}, logits{a, {T, V}}, per_token{MLG_F32, {T}};
  const Operand q{a, {T, H, h}}, k{a, {T, K, h}}, gate{a, {T, H}};
  const Operand vector{MLG_F32, {d}}, pair{MLG_F32, {2}}, square{MLG_F32, {2, 2}}, mix{MLG_F32, {2, d}};
  const Operand table{MLG_F32, {2048, 8}}, gain{MLG_F32, {H}}, master{MLG_F32, {T, d}};
  const Operand embedding{a, {V, d}}, embedding_gradient{MLG_F32, {V, d}}, total{MLG_F64, {1}},
      one{MLG_F32, {1}};
  const Operand absent{MLG_ABSENT, {}};
  const mlg_attribute scale{"scale", 0.5}, eps{"eps", kEps}, slope{"slope", 0.5}, cap{"cap", 30};
  const std::vector<mlg_attribute> rope{{"rope_dims", 16}, {"row_length", 2048}, {"norm", 1}, eps};
  std::vector<mlg_attribute> rope_backward = rope;
  rope_backward.push_back({"accumulate_dx", 0});
  const std::vector<mlg_attribute> xsa{{"accumulate_do", 0}, {"accumulate_dv", 1}, {"accumulate_dgate", 0}};
  return {
      {"cast", {master, master}, {}, {}, "f32_f32"},
      {"cast", {master, x}, {}, {}, "f32"},
      {"embedding_fwd", {token_ids(), embedding, x}},
      {"embedding_bwd", {token_ids(), x, embedding_gradient}, {}, {2}},
      {"rms_norm_fwd", {x, x}, {scale, eps}},
      {"rms_norm_bwd", {x, x, x}, {scale, eps, {"accumulate_dx", 0}}},
      {"residual_mix_norm_fwd", {x, x, mix, x, x}, {scale, eps}},
      {"residual_mix_norm_bwd",
       {x, x, mix, x, x, x, x, mix},
       {scale, eps, {"accumulate_dx", 0}, {"accumulate_dx0", 1}},
       {6}},
      {"scaled_add_norm_fwd", {x, x, vector, x, x}, {scale, eps}},
      {"scaled_add_norm_bwd",
       {x, x, vector, x, x, x, x, vector},
       {scale, eps, {"accumulate_dx", 0}, {"accumulate_da", 0}}},
      {"qk_norm_rope_fwd", {q, table, table, gain, q}, rope},
      {"qk_norm_rope_bwd", {q, table, table, gain, q, q, gain}, rope_backward},
      {"head_gate_xsa_fwd", {q, k, gate, q}, {{"gate_scale", 1}}},
      {"head_gate_xsa_bwd", {q, k, gate, q, q, k, gate}, xsa, {5}},
      {"leaky_relu_squared_fwd", {mlp, mlp}, {slope}},
      {"leaky_relu_squared_bwd", {mlp, mlp, mlp}, {slope, {"accumulate_du", 0}}},
      {"skip_merge_fwd", {x, x, vector, vector, x}},
      {"skip_merge_bwd",
       {x, x, vector, vector, x, x, x, vector, vector},
       {{"accumulate_dx", 0}, {"accumulate_ds", 1}},
       {6}},
      {"lane_merge_fwd", {x, x, x, x, vector, vector, pair, square, x, x}},
      {"lane_merge_bwd",
       {x, x, x, x, vector, vector, pair, square, x, x, x, x, x, x, vector, vector, pair, square},
       {{"accumulate_dlane0", 0}, {"accumulate_dlane1", 0}, {"accumulate_da", 0}, {"accumulate_dm", 0}}},
      {"axpby", {x, x, x}, {{"alpha", 0.5}, {"beta", 0.5}, {"accumulate_y", 0}}},
      {"softcap_fwd", {logits, logits}, {cap}},
      {"softcap_bwd", {logits, logits, logits}, {cap, {"accumulate_dz", 0}}},
      {"cross_entropy_fwd", {logits, token_ids(), per_token, per_token}},
      {"cross_entropy_bwd", {logits, token_ids(), per_token, per_token, logits}},
      {"sum_squares_f64", {x, total}},
      {"lerp_into", {master, x}, {{"decay", 0.9965}}, {0}},
      {"scale_by", {master, one}, {}, {0}},
  };
}

const bool registered = [] {
  for (const mlg_dtype dtype : {MLG_F32, MLG_BF16}) {
    for (const Subject& subject : subjects(dtype)) {
      std::string name = subject.kernel + (dtype == MLG_F32 ? "/f32" : "/bf16");
      if (!subject.remark.empty()) name += "/from_" + subject.remark;
      benchmark::RegisterBenchmark(name.c_str(),
                                   [subject](benchmark::State& state) { measure(state, subject); })
          ->UseRealTime()
          ->Unit(benchmark::kMillisecond)
          ->MinWarmUpTime(0.05)
          ->MinTime(0.2);
    }
  }
  return true;
}();

}  // namespace
}  // namespace mulligan::bench
