#include "tools/doctor/gradient_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "framework/core/philox.h"
#include "tools/doctor/probe.h"

namespace mulligan::doctor {
namespace {

constexpr std::int64_t row_tokens = 24;
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

class Slope {
 public:
  Slope(MicroStepProbe& probe, const Weights& weights) : probe_(probe), weights_(weights) {}

  // By central differences of fourth order along a direction of length 1 of one parameter, in steps that move
  // the loss by about `change` nats at the slope `expected`.
  Seen along(const std::string& parameter, const std::vector<float>& direction, double expected) {
    constexpr double change = 0.01;
    const double step = change / std::max(expected, 1e-9);
    // Never further than the weights themselves are large.
    const double most = 0.004 * norm_of(weights_.at(parameter));
    const double h = std::min(step, std::max(most, 1e-6)) / 2;
    const double slope = (8 * (loss_at(parameter, direction, h) - loss_at(parameter, direction, -h)) -
                          (loss_at(parameter, direction, 2 * h) - loss_at(parameter, direction, -2 * h))) /
                         (12 * h);
    constexpr double noise_of_a_loss = 5e-7;  // in f32, of the mean over a row
    return {slope, noise_of_a_loss / h};
  }

 private:
  double loss_at(const std::string& parameter, const std::vector<float>& direction, double distance) {
    std::vector<float> moved = weights_.at(parameter);
    for (std::size_t i = 0; i < moved.size(); ++i)
      moved[i] += static_cast<float>(distance * static_cast<double>(direction[i]));
    probe_.set(Weights{{parameter, moved}});
    probe_.run();
    const double loss = probe_.mean_loss();
    probe_.set(Weights{{parameter, weights_.at(parameter)}});
    return loss;
  }

  MicroStepProbe& probe_;
  const Weights& weights_;
};

}  // namespace

Finding check_gradients(Backend& backend, const Loss& loss, const RunConfig& config) {
  Finding f;
  f.id = "D13";
  f.title = "gradients against differences of losses";
  f.threshold = fmt::format("fails beyond {:.0f} % and the noise of f32", 100 * tolerance);
  MicroStepProbe probe(backend, loss, config, row_tokens, MLG_F32);
  const Weights weights = vivid_weights(config.model);
  probe.set(weights);
  probe.set(drawn_row({row_tokens / 3, row_tokens - row_tokens / 3}, config.model.vocabulary, 9));
  probe.run();
  std::map<std::string, std::vector<float>> gradients;
  for (const PlannedParameter& parameter : probe.parameters())
    if (parameter.trained()) gradients[parameter.name()] = probe.gradient(parameter.name());

  Slope slope(probe, weights);
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
      const Seen seen = slope.along(name, unit, size);
      const double beyond_noise = std::max(0.0, std::abs(seen.slope - size) - seen.noise) / size;
      const double off = std::isfinite(seen.slope) ? beyond_noise : 1e9;
      ++compared;
      if (off <= worst) continue;
      worst = off;
      worst_name = name;
      if (off > tolerance) {
        f.verdict = Verdict::fail;
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
  f.verdict = Verdict::fail;
  f.message = "no parameter has a gradient";
  f.hint = "look at the loss plugin's backward pass";
  return f;
}

}  // namespace mulligan::doctor
