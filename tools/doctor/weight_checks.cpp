#include "tools/doctor/model_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "framework/checkpoint/compare.h"
#include "framework/model/qwen2/parameters.h"

namespace mulligan::doctor {
namespace {

constexpr const char* look_at_file =
    "read the weights again from their source, with the dtype that its header should name";

struct Moments {
  double mean = 0, deviation = 0;
};
Moments moments(std::span<const float> values) {
  double sum = 0, squares = 0;
  for (const float value : values) sum += static_cast<double>(value);
  const auto count = static_cast<double>(values.size());
  for (const float value : values) squares += std::pow(static_cast<double>(value) - sum / count, 2);
  return {sum / count, std::sqrt(squares / count)};
}

bool is_random(Initial kind) {
  return kind == Initial::normal || kind == Initial::orthogonal;
}
bool begins_at_zero(const ParameterSpec& spec) {
  return std::ranges::all_of(spec.initial, [](const InitialPart& part) {
    return part.kind == Initial::zeros || (part.kind == Initial::constant && part.value == 0);
  });
}
bool begins_random(const ParameterSpec& spec) {
  return std::ranges::all_of(spec.initial, [](const InitialPart& part) { return is_random(part.kind); });
}

}  // namespace

Finding check_magnitudes(const std::vector<ParameterSpec>& parameters, const Weights& weights) {
  Finding f = begin_finding("D05", "spread of the weights' magnitudes",
                            "standard deviation of log2|x|: fails above 6 and, with a median magnitude from "
                            "1/4 to 2, below 0.5; warns above 3 and, with such a median, below 0.9");
  std::size_t looked_at = 0;
  double least = 1e30, most = 0;
  for (const ParameterSpec& spec : parameters) {
    const auto found = weights.find(spec.name);
    if (!spec.matrix || found == weights.end()) continue;
    const MagnitudeReport report = test_magnitudes(found->second);
    if (report.count < magnitude_test_elements) continue;
    ++looked_at;
    least = std::min(least, report.log2_spread);
    most = std::max(most, report.log2_spread);
    const CheckOutcome verdict = report.verdict == MagnitudeVerdict::plausible    ? CheckOutcome::pass
                                 : report.verdict == MagnitudeVerdict::suspicious ? CheckOutcome::warn
                                                                                  : CheckOutcome::fail;
    f.note(verdict, fmt::format("{}: {}", spec.name, describe(report)), look_at_file);
  }
  f.measured = looked_at == 0 ? "no matrix of 4,096 elements or more"
                              : fmt::format("{:.3f} to {:.3f} over {} matrices", least, most, looked_at);
  return f;
}

Finding check_values(const std::vector<ParameterSpec>& parameters, const Weights& weights,
                     WeightOrigins origin) {
  Finding f =
      begin_finding("D06", "values of the weights",
                    "fails where one is not finite, or a tensor that begins with random numbers is constant");
  std::size_t bad = 0, constant = 0;
  for (const ParameterSpec& spec : parameters) {
    const auto found = weights.find(spec.name);
    if (found == weights.end() || found->second.empty()) continue;
    const std::vector<float>& values = found->second;
    const auto broken = std::ranges::find_if(values, [](float value) { return !std::isfinite(value); });
    if (broken != values.end()) {
      ++bad;
      f.note(CheckOutcome::fail,
             fmt::format("element {} of {} is {}", broken - values.begin(), spec.name, *broken),
             "go back to a checkpoint from before, or read the weights again from their source");
    }
    const auto [least, most] = std::ranges::minmax_element(values);
    if (values.size() < 2 || *least != *most) continue;
    const std::string what = fmt::format("all {} elements of {} are {}", values.size(), spec.name, *least);
    if (begins_random(spec)) {
      ++constant;
      f.note(CheckOutcome::fail, what,
             "draw or read this tensor again: nothing can be learned from equal numbers");
    } else if (origin == WeightOrigins::trained && begins_at_zero(spec) && *least == 0) {
      ++constant;
      f.note(CheckOutcome::warn, what + ", as before any training",
             "look whether it was updated: its row in [[parameters]], its learning rate");
    }
  }
  f.measured = fmt::format("{} tensors that are not finite, {} constant ones, of {}", bad, constant,
                           parameters.size());
  return f;
}

Finding check_bands(const std::vector<ParameterSpec>& parameters, const Weights& weights,
                    WeightOrigins origin) {
  Finding f = begin_finding("D07", "mean and standard deviation of embedding and norms",
                            origin == WeightOrigins::drawn
                                ? "fails where they are not those that were drawn, by 10 %"
                                : "embedding: fails beyond a mean of 0.05 or a standard deviation of "
                                  "0.005 (or half the initial one) to 0.5; "
                                  "norms: mean of 0.01 to 100");
  std::string measured;
  for (const ParameterSpec& spec : parameters) {
    const auto found = weights.find(spec.name);
    if (found == weights.end() || spec.initial.empty()) continue;
    const bool embedding = spec.name == "tok_emb.weight" || spec.name == qwen2::embedding_parameter,
               norm = spec.type.rank == 1 && spec.name.find("norm") != std::string::npos;
    if (!embedding && !norm) continue;
    const Moments m = moments(found->second);
    const InitialPart& start = spec.initial.front();
    CheckOutcome verdict = CheckOutcome::pass;
    if (norm) {
      verdict = judge(m.mean, {0.01, 100});
    } else if (origin == WeightOrigins::drawn && start.kind == Initial::normal) {
      // Small samples scatter: six standard errors on top.
      const double noise = 6 / std::sqrt(2.0 * static_cast<double>(found->second.size()));
      verdict = std::max(judge(m.deviation / start.value, {0.9 - noise, 1.1 + noise}),
                         judge(std::abs(m.mean) / start.value, {-no_limit, 0.1 + 2 * noise}));
    } else {
      const double least = start.kind == Initial::normal ? std::min(0.005, start.value / 2) : 0.005;
      verdict = std::max(judge(std::abs(m.mean), {-no_limit, 0.05}), judge(m.deviation, {least, 0.5}));
    }
    if (embedding)
      measured = fmt::format("embedding: mean {:.2g}, standard deviation {:.4g}", m.mean, m.deviation);
    f.note(verdict,
           fmt::format("{} has a mean of {:.4g} and a standard deviation of {:.4g}", spec.name, m.mean,
                       m.deviation),
           look_at_file);
  }
  f.measured = measured.empty() ? "no embedding" : measured;
  return f;
}

std::vector<Finding> check_weights(const std::vector<ParameterSpec>& parameters, const Weights& weights,
                                   WeightOrigins origin) {
  return {check_magnitudes(parameters, weights), check_values(parameters, weights, origin),
          check_bands(parameters, weights, origin)};
}

}  // namespace mulligan::doctor
