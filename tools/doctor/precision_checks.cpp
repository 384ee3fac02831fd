#include "tools/doctor/precision_checks.h"

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

using Counts = std::map<std::string, int>;

// "9 in f32, 2 in bf16"
std::string counts_text(const Counts& counts) {
  std::vector<std::string> parts;
  for (const auto& [dtype, count] : counts) parts.push_back(fmt::format("{} in {}", count, dtype));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::string kept_text(const RunConfig& config, OptimizerGroups& groups) {
  Counts masters, travelling;
  for (const PlannedParameter& parameter : plan_parameters(config)) {
    ++masters[dtype_name(parameter.layout.master)];
    ++travelling[dtype_name(parameter.communication_dtype)];
  }
  const Graph update = groups.record_update({}, 1);
  std::map<std::string, DType> types;
  for (std::uint32_t id = 1; id <= update.value_count(); ++id) {
    const Graph::ValueInfo& info = update.info(Value{id});
    if (info.storage != Graph::Storage::external) continue;
    types[info.name] = info.type.dtype;
    for (const UpdateUnits::Part& part : groups.units().parts(info.name, info.type))
      types[part.name] = info.type.dtype;
  }
  std::string text = fmt::format("masters: {}; gradients: f32, between ranks {}", counts_text(masters),
                                 counts_text(travelling));
  for (const OptimizerGroup& group : groups.groups()) {
    Counts states;
    for (const std::string& state : group.states) {
      if (const auto found = types.find(state); found != types.end()) ++states[dtype_name(found->second)];
    }
    text += fmt::format("; states of [optimizer.{}]: {}", group.name,
                        states.empty() ? "none" : counts_text(states));
  }
  return text;
}

Finding check_precision(Backend& backend, DType compute, const std::string& kept) {
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
  const double product_kept = compute == MLG_F32 ? product(backend, MLG_F32, fine, one) : 1 + 1.0 / 4096;
  const double sum = product(backend, compute, large, ones);
  f.measured = fmt::format("compute {}: 1 + 2^-12 stays {:.8g}, a sum of {} is {:.8g}; {}",
                           dtype_name(compute), product_kept, expected_sum, sum, kept);
  if (product_kept != 1 + 1.0 / 4096) {
    f.message = fmt::format("a product in fp32 rounds 1 + 2^-12 to {:.8g}: it is computed in TF32 or less",
                            product_kept);
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
