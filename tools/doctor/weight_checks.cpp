#include "tools/doctor/model_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "framework/model/qwen2/parameters.h"

namespace mulligan::doctor {
namespace {

constexpr const char* look_at_file =
    "read the weights again from their source, with the dtype that its header should name";
constexpr std::size_t enough_elements = 4096;

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

MagnitudeSpread magnitude_spread(const std::vector<float>& values) {
  constexpr std::size_t most = std::size_t{1} << 18;  // at even distances: enough for two digits
  const std::size_t stride = std::max<std::size_t>(1, values.size() / most);
  std::vector<double> logs;
  for (std::size_t i = 0; i < values.size(); i += stride) {
    const float value = values[i];
    if (value != 0 && std::isfinite(value)) logs.push_back(std::log2(std::abs(static_cast<double>(value))));
  }
  if (logs.empty()) return {};
  const auto count = static_cast<double>(logs.size());
  const double mean = std::accumulate(logs.begin(), logs.end(), 0.0) / count;
  double squares = 0;
  for (const double log : logs) squares += (log - mean) * (log - mean);
  const auto middle = logs.begin() + static_cast<std::ptrdiff_t>(logs.size() / 2);
  std::ranges::nth_element(logs, middle);
  return {logs.size(), std::sqrt(squares / count), std::exp2(*middle)};
}

namespace {

// The sign and the exponent's upper five bits of a bf16 number are the sign and exponent of an f16 one:
// weights between 2^-16 and 2 turn into numbers between 1/4 and 2. A spread as small elsewhere has another
// cause: the first updates of AdamW move every element by as much.
CheckOutcome judge_spread(const MagnitudeSpread& spread) {
  const CheckOutcome verdict = judge(spread.log2_std, {0.5, 6, 0.9, 3});
  const bool narrow = spread.log2_std < 1;
  return narrow && !(spread.median >= 0.25 && spread.median < 2) ? CheckOutcome::pass : verdict;
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
    const MagnitudeSpread spread = magnitude_spread(found->second);
    if (spread.count < enough_elements) continue;
    ++looked_at;
    least = std::min(least, spread.log2_std);
    most = std::max(most, spread.log2_std);
    const CheckOutcome verdict = judge_spread(spread);
    const char* mechanism = spread.log2_std < 0.5 ? ": this looks like bf16 bytes decoded as f16"
                            : spread.log2_std > 6
                                ? ": this looks like f16 bytes decoded as bf16, or like the wrong byte order"
                                : "";
    f.note(verdict,
           fmt::format(
               "log2 of the magnitudes of {} has a standard deviation of {:.3f} (median magnitude {:.3g}), "
               "where weights have about 1.6{}",
               spec.name, spread.log2_std, spread.median, mechanism),
           look_at_file);
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
