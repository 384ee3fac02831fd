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

// D07 of one tensor of `count` elements, which began as `start`.
CheckOutcome band_of(const Moments& m, const InitialPart& start, bool norm, bool drawn, std::size_t count) {
  if (norm) return judge(m.mean, {0.01, 100});
  if (drawn && start.kind == Initial::normal) {
    // Small samples scatter: six standard errors on top.
    const double noise = 6 / std::sqrt(2.0 * static_cast<double>(count));
    return std::max(judge(m.deviation / start.value, {0.9 - noise, 1.1 + noise}),
                    judge(std::abs(m.mean) / start.value, {-no_limit, 0.1 + 2 * noise}));
  }
  const double least = start.kind == Initial::normal ? std::min(0.005, start.value / 2) : 0.005;
  return std::max(judge(std::abs(m.mean), {-no_limit, 0.05}), judge(m.deviation, {least, 0.5}));
}

}  // namespace

std::vector<Finding> check_weights(const std::vector<ParameterSpec>& parameters, const Weights& weights,
                                   WeightOrigins origin) {
  const bool drawn = origin == WeightOrigins::drawn;
  Finding spread =
      begin_finding("D05", "spread of the weights' magnitudes",
                    "standard deviation of log2|x|: fails above 6 and, with a median magnitude from "
                    "1/4 to 2, below 0.5; warns above 3 and, with such a median, below 0.9");
  Finding values =
      begin_finding("D06", "values of the weights",
                    "fails where one is not finite, or a tensor that begins with random numbers is constant");
  Finding bands = begin_finding("D07", "mean and standard deviation of embedding and norms",
                                drawn ? "fails where they are not those that were drawn, by 10 %"
                                      : "embedding: fails beyond a mean of 0.05 or a standard deviation of "
                                        "0.005 (or half the initial one) to 0.5; "
                                        "norms: mean of 0.01 to 100");
  std::size_t matrices = 0, bad = 0, constant = 0;
  double least_spread = 1e30, most_spread = 0;
  std::string of_embedding = "no embedding";
  for (const ParameterSpec& spec : parameters) {
    const auto found = weights.find(spec.name);
    if (found == weights.end() || found->second.empty()) continue;
    const std::vector<float>& w = found->second;
    const MagnitudeReport report = spec.matrix ? test_magnitudes(w) : MagnitudeReport{};
    if (report.count >= magnitude_test_elements) {
      ++matrices;
      least_spread = std::min(least_spread, report.log2_spread);
      most_spread = std::max(most_spread, report.log2_spread);
      spread.note(report.verdict == MagnitudeVerdict::plausible    ? CheckOutcome::pass
                  : report.verdict == MagnitudeVerdict::suspicious ? CheckOutcome::warn
                                                                   : CheckOutcome::fail,
                  fmt::format("{}: {}", spec.name, describe(report)), look_at_file);
    }
    const auto broken = std::ranges::find_if(w, [](float value) { return !std::isfinite(value); });
    if (broken != w.end()) {
      ++bad;
      values.note(CheckOutcome::fail,
                  fmt::format("element {} of {} is {}", broken - w.begin(), spec.name, *broken),
                  "go back to a checkpoint from before, or read the weights again from their source");
    }
    const auto [least, most] = std::ranges::minmax_element(w);
    const std::string equal = fmt::format("all {} elements of {} are {}", w.size(), spec.name, *least);
    if (w.size() > 1 && *least == *most && begins_random(spec)) {
      ++constant;
      values.note(CheckOutcome::fail, equal,
                  "draw or read this tensor again: nothing can be learned from equal numbers");
    } else if (w.size() > 1 && *least == 0 && *most == 0 && !drawn && begins_at_zero(spec)) {
      ++constant;
      values.note(CheckOutcome::warn, equal + ", as before any training",
                  "look whether it was updated: its row in [[parameters]], its learning rate");
    }
    const bool embedding = spec.name == "tok_emb.weight" || spec.name == qwen2::embedding_parameter,
               norm = spec.type.rank == 1 && spec.name.find("norm") != std::string::npos;
    if (spec.initial.empty() || (!embedding && !norm)) continue;
    const Moments m = moments(w);
    bands.note(band_of(m, spec.initial.front(), norm, drawn, w.size()),
               fmt::format("{} has a mean of {:.4g} and a standard deviation of {:.4g}", spec.name, m.mean,
                           m.deviation),
               look_at_file);
    if (embedding)
      of_embedding = fmt::format("embedding: mean {:.2g}, standard deviation {:.4g}", m.mean, m.deviation);
  }
  spread.measured =
      matrices == 0 ? "no matrix of 4,096 elements or more"
                    : fmt::format("{:.3f} to {:.3f} over {} matrices", least_spread, most_spread, matrices);
  values.measured = fmt::format("{} tensors that are not finite, {} constant ones, of {}", bad, constant,
                                parameters.size());
  bands.measured = of_embedding;
  return {spread, values, bands};
}

}  // namespace mulligan::doctor
