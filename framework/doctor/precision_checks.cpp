#include "framework/doctor/precision_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <map>

#include "framework/check/poisoned_run.h"
#include "framework/run/parameter_plan.h"

namespace mulligan::doctor {
namespace {

// [16, inner] times [16, inner]^T with all rows `a` and `b`; the first result.
double product(Backend& backend, DType dtype, const std::vector<float>& a, const std::vector<float>& b) {
  constexpr std::int64_t rows = 16;
  const auto inner = static_cast<std::int64_t>(a.size());
  Graph graph;
  graph.call("matmul",
             {graph.external("a", TensorType(dtype, {rows, inner})),
              graph.external("b", TensorType(dtype, {rows, inner})),
              graph.external("c", TensorType(MLG_F32, {rows, rows}))},
             {{"transpose_a", 0}, {"transpose_b", 1}, {"alpha", 1}, {"beta", 0}});
  PoisonedRun run(backend, graph, "doctor/precision");
  const auto repeated = [](const std::vector<float>& row) {
    std::vector<float> all;
    for (std::int64_t i = 0; i < rows; ++i) all.insert(all.end(), row.begin(), row.end());
    return all;
  };
  run.set("a", repeated(a));
  run.set("b", repeated(b));
  run.run(poison_nan);
  return static_cast<double>(run.floats("c").front());
}

std::string masters_text(const RunConfig& config) {
  std::map<std::string, int> counts;
  for (const PlannedParameter& parameter : plan_parameters(config))
    ++counts[dtype_name(parameter.layout.master)];
  std::vector<std::string> parts;
  for (const auto& [name, count] : counts) parts.push_back(fmt::format("{} in {}", count, name));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

Finding check_precision(Backend& backend, const RunConfig& config, DType compute) {
  Finding f;
  f.id = "D33";
  f.title = "precision of products";
  f.threshold = "any rounding that the compute dtype does not declare fails";
  constexpr std::size_t inner = 4096;
  // 12 bits behind the point: TF32 has 10, bf16 7. Exact in fp32.
  std::vector<float> fine(32, 0.0F), one(32, 0.0F);
  fine[3] = 1 + 1.0F / 4096;
  one[3] = 1;
  // 4096 and then 4,095 quarters: every partial sum is exact in fp32 in any order; a bf16 sum stays at 4096.
  std::vector<float> large(inner, 0.25F), ones(inner, 1.0F);
  large[0] = 4096;
  const double expected_sum = 4096 + 0.25 * (inner - 1);
  const double kept = compute == MLG_F32 ? product(backend, MLG_F32, fine, one) : 1 + 1.0 / 4096;
  const double sum = product(backend, compute, large, ones);
  f.measured = fmt::format("compute {}: 1 + 2^-12 stays {:.8g}, a sum of {} is {:.8g}; masters: {}",
                           dtype_name(compute), kept, expected_sum, sum, masters_text(config));
  if (kept != 1 + 1.0 / 4096) {
    f.message =
        fmt::format("a product in fp32 rounds 1 + 2^-12 to {:.8g}: it is computed in TF32 or less", kept);
    f.hint = "declare it (train.compute_dtype), or turn the reduced precision of the backend's products off";
  } else if (sum != expected_sum) {
    f.message = fmt::format("a sum of {} products is {:.8g} instead of {:.8g}: it is not added up in fp32",
                            inner, sum, expected_sum);
    f.hint = "products must accumulate in fp32 (docs/kernels.md, matmul)";
  }
  if (!f.message.empty()) f.verdict = Verdict::fail;
  return f;
}

}  // namespace mulligan::doctor
