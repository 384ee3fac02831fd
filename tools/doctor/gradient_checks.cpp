#include "tools/doctor/model_checks.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <map>

#include "framework/check/poisoned_run.h"
#include "framework/core/philox.h"
#include "framework/run/parameter_plan.h"
#include "tools/doctor/probe.h"

namespace mulligan::doctor {
namespace {

constexpr std::int64_t gradient_tokens = 24;
constexpr double tolerance = 0.01;

double norm_of(const std::vector<float>& values) {
  double squares = 0;
  for (const float value : values) squares += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(squares);
}

// A slope, and how far noise can put it off.
struct Seen {
  double slope = 0, noise = 0;
};

// By central differences of fourth order along a direction of length 1 of one parameter with these values, in steps
// that move the loss by about `change` nats at the slope `expected`.
Seen slope_along(MicroStepProbe& probe, const std::string& parameter, const std::vector<float>& values,
                 const std::vector<float>& direction, double expected) {
  const auto loss_at = [&](double distance) {
    std::vector<float> moved = values;
    for (std::size_t i = 0; i < moved.size(); ++i)
      moved[i] += static_cast<float>(distance * static_cast<double>(direction[i]));
    probe.set(Weights{{parameter, moved}});
    probe.run();
    return probe.mean_loss();
  };
  constexpr double change = 0.01;
  const double step = change / std::max(expected, 1e-9);
  // Never further than the weights themselves are large.
  const double h = std::min(step, std::max(0.004 * norm_of(values), 1e-6)) / 2;
  const double slope = (8 * (loss_at(h) - loss_at(-h)) - (loss_at(2 * h) - loss_at(-2 * h))) / (12 * h);
  probe.set(Weights{{parameter, values}});
  constexpr double noise_of_a_loss = 5e-7;  // in f32, of the mean over a row
  return {slope, noise_of_a_loss / h};
}

}  // namespace

Finding check_gradients(Backend& backend, const Loss& loss, const RunConfig& config) {
  Finding f = begin_finding("D13", "gradients against differences of losses",
                            fmt::format("fails beyond {:.0f} % and the noise of f32", 100 * tolerance));
  const Weights weights = vivid_weights(config.model);
  MicroStepProbe probe(
      backend, loss, config, MLG_F32, weights,
      drawn_row({gradient_tokens / 3, gradient_tokens - gradient_tokens / 3}, config.model.vocabulary, 9));
  probe.run();
  std::map<std::string, std::vector<float>> gradients;
  for (const PlannedParameter& parameter : plan_parameters(config))
    if (parameter.trained()) gradients[parameter.name()] = probe.gradient(parameter.name());

  double worst = 0;
  std::string worst_name = "none";
  std::size_t compared = 0, flat = 0;
  for (const auto& [name, gradient] : gradients) {
    const double length = norm_of(gradient);
    // f32 losses cannot show less than this.
    if (length < 2e-4) {
      ++flat;
      continue;
    }
    const PhiloxStream half(0, "doctor/half/" + name);
    std::vector<float> part = gradient;
    for (std::size_t i = 0; i < part.size(); ++i)
      if (half.uniform(i) < 0.5) part[i] = 0;
    for (const std::vector<float>& direction : {gradient, part}) {
      const double size = norm_of(direction);
      if (size < 2e-4) continue;
      std::vector<float> unit = direction;
      for (float& value : unit) value = static_cast<float>(static_cast<double>(value) / size);
      const Seen seen = slope_along(probe, name, weights.at(name), unit, size);
      const double beyond_noise = std::max(0.0, std::abs(seen.slope - size) - seen.noise) / size;
      const double off = std::isfinite(seen.slope) ? beyond_noise : 1e9;
      ++compared;
      if (off <= worst) continue;
      worst = off;
      worst_name = name;
      if (off > tolerance) {
        f.verdict = CheckOutcome::fail;
        f.message = fmt::format(
            "along the gradient of {} the loss changes by {:.5g} nats per unit, but the gradient says {:.5g}",
            name, seen.slope, size);
        f.hint =
            "compare the backward kernels of this parameter with docs/kernels.md; mulligan plugins check "
            "compares a loss's";
      }
    }
  }
  f.measured = fmt::format("{} directions of {} parameters; furthest off: {}, {:.2g} %{}", compared,
                           gradients.size() - flat, worst_name, 100 * worst,
                           flat > 0 ? fmt::format("; {} without a gradient to speak of", flat) : "");
  if (compared > 0) return f;
  return failed(std::move(f), "no parameter has a gradient", "look at the loss plugin's backward pass");
}

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

// "; states of [optimizer.matrices]: 9 in f32"
std::string states_text(OptimizerGroups& groups) {
  std::map<std::string, DType> types;
  for (const auto& [name, type] : external_types(groups.record_update({}, 1))) {
    types[name] = type.dtype;
    for (const UpdateUnits::Part& part : groups.units().parts(name, type)) types[part.name] = type.dtype;
  }
  std::string text;
  for (const OptimizerGroup& group : groups.groups()) {
    std::map<std::string, int> counts;
    for (const std::string& state : group.states) ++counts[dtype_name(types.at(state))];
    text += fmt::format("; states of [optimizer.{}]:{}", group.name, counts.empty() ? " none" : "");
    for (const auto& [dtype, count] : counts) text += fmt::format(" {} in {}", count, dtype);
  }
  return text;
}

}  // namespace

Finding check_precision(Backend& backend, DType compute, OptimizerGroups& groups) {
  Finding f = begin_finding("D33", "precision of matmuls",
                            "any rounding that the compute dtype does not declare fails");
  constexpr std::size_t inner = 4096;
  // 12 bits after the point: TF32 has 10, bf16 7. Exact in fp32.
  std::vector<float> fine(32, 0.0F), one(32, 0.0F);
  fine[3] = 1 + 1.0F / 4096;
  one[3] = 1;
  // 4096 and then 4,095 quarters: every partial sum is exact in fp32 in any order; a bf16 sum stays at 4096.
  std::vector<float> large(inner, 0.25F), ones(inner, 1.0F);
  large[0] = 4096;
  const double expected_sum = 4096 + 0.25 * (inner - 1);
  const double product_kept = compute == MLG_F32 ? product(backend, MLG_F32, fine, one) : 1 + 1.0 / 4096;
  const double sum = product(backend, compute, large, ones);
  f.measured = fmt::format("compute {}: 1 + 2^-12 stays {:.8g}, a sum of {} is {:.8g}{}", dtype_name(compute),
                           product_kept, expected_sum, sum, states_text(groups));
  if (product_kept != 1 + 1.0 / 4096) {
    f.note(CheckOutcome::fail,
           fmt::format("a matmul in fp32 rounds 1 + 2^-12 to {:.8g}: it is computed in TF32 or less",
                       product_kept),
           "declare it (train.compute_dtype), or turn the reduced precision of the backend's matmuls off");
  }
  if (sum != expected_sum) {
    f.note(CheckOutcome::fail,
           fmt::format("a sum of {} terms is {:.8g} instead of {:.8g}: it is not added up in fp32", inner,
                       sum, expected_sum),
           "matmuls must accumulate in fp32 (docs/kernels.md)");
  }
  return f;
}

}  // namespace mulligan::doctor
