#include "lab/probe/difference.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "framework/core/printable.h"
#include "framework/core/statistic.h"

namespace mulligan::probe {
namespace {

using nlohmann::ordered_json;

// "1.2e-05 ± 4.5e-06", "0", "2.0312 ± 0.0021"; digits: after the point, -1 for powers of ten.
std::string spread(const std::vector<double>& values, int digits) {
  const Statistic statistic = statistic_of(values);
  const auto number = [&](double value) {
    if (digits >= 0) return fmt::format("{:.{}f}", value, digits);
    return value == 0 ? std::string("0") : fmt::format("{:.1e}", value);
  };
  if (statistic.deviation.value_or(0) == 0) return number(statistic.mean);
  return fmt::format("{} ± {}", number(statistic.mean), number(*statistic.deviation));
}

// A number of each run.
template <typename F>
std::vector<double> of_runs(std::size_t runs, F&& number) {
  std::vector<double> values;
  for (std::size_t run = 0; run < runs; ++run) values.push_back(number(run));
  return values;
}

// Bytes, score and speed of a precision.
std::string markdown_of_precision(const std::vector<std::vector<Measurement>>& runs, std::size_t m) {
  const Measurement& one = runs.front()[m];
  std::string score = "-", speed = "-";
  if (one.val_bpb) {
    score =
        spread(of_runs(runs.size(), [&](std::size_t run) { return runs[run][m].val_bpb.value_or(NAN); }), 4);
    speed = spread(
        of_runs(runs.size(), [&](std::size_t run) { return runs[run][m].scored_tokens_per_second; }), 0);
  }
  return fmt::format("| {} | | | | | {} | {} | {} |\n", one.precision, grouped(one.weight_bytes), score,
                     speed);
}

ordered_json json_of(const Comparison& comparison) {
  const double largest = comparison.logits.largest_over_rms;
  const Divergence& texts = comparison.texts;
  return {{"compared", comparison.what},
          {"largest_over_rms", std::isfinite(largest) ? ordered_json(largest) : ordered_json()},
          {"top1_flips", comparison.logits.flips},
          {"rows", comparison.logits.rows},
          {"texts", texts.texts},
          {"texts_diverged", texts.diverged},
          {"mean_divergence_index", texts.mean_index}};
}

}  // namespace

std::string probe_markdown(const std::vector<std::vector<Measurement>>& runs, const ProbeOptions& options) {
  std::string text = fmt::format(
      "n = {} run{}; logits of {} sequences of {} tokens and {} greedy tokens each; mean ± standard deviation "
      "over the runs. abs(d)/rms: the largest difference of a logit over the rms of the reference's. Flips: "
      "per "
      "1,000 tokens. Index: first place where greedy texts differ, {} where they do not.\n\n"
      "| precision | compared | abs(d)/rms | flips | index | weights, bytes | val_bpb | scored tokens/s |\n"
      "|---|---|---|---|---|---|---|---|\n",
      runs.size(), runs.size() == 1 ? "" : "s", options.sequences, options.length, options.tokens,
      options.tokens);
  std::vector<std::vector<Comparison>> compared;
  for (const std::vector<Measurement>& run : runs) compared.push_back(comparisons(run));
  std::size_t next = 0;
  for (std::size_t m = 0; m < runs.front().size(); ++m) {
    if (runs.front()[m].setting.empty()) text += markdown_of_precision(runs, m);
    for (; next < compared.front().size() && compared.front()[next].measurement == m; ++next) {
      const auto cell = [&](auto number, int digits) {
        return spread(of_runs(runs.size(), [&](std::size_t run) { return number(compared[run][next]); }),
                      digits);
      };
      text += fmt::format(
          "| {} | {} | {} | {} | {} | | | |\n", runs.front()[m].precision, compared.front()[next].what,
          cell([](const Comparison& one) { return one.logits.largest_over_rms; }, -1),
          cell(
              [](const Comparison& one) {
                return 1000.0 * static_cast<double>(one.logits.flips) / static_cast<double>(one.logits.rows);
              },
              2),
          options.tokens == 0 ? "-" : cell([](const Comparison& one) { return one.texts.mean_index; }, 1));
    }
  }
  return text;
}

std::string probe_json(const std::vector<Measurement>& measurements, const ProbeOptions& options,
                       const std::string& weights) {
  ordered_json json = {{"format", "mulligan probe 1"},
                       {"weights", weights},
                       {"sequences", options.sequences},
                       {"length", options.length},
                       {"prompt", options.prompt},
                       {"tokens", options.tokens},
                       {"measurements", ordered_json::array()}};
  for (const Measurement& one : measurements) {
    json["measurements"].push_back({{"precision", one.precision},
                                    {"setting", one.setting},
                                    {"device", one.device},
                                    {"projection_elements", one.projection_elements},
                                    {"other_elements", one.other_elements},
                                    {"weight_bytes", one.weight_bytes},
                                    {"held_bytes", one.held_bytes},
                                    {"val_bpb", one.val_bpb ? ordered_json(*one.val_bpb) : ordered_json()},
                                    {"scored_tokens_per_second", one.scored_tokens_per_second},
                                    {"batch_changes", ordered_json::array()},
                                    {"setting_changes", ordered_json()},
                                    {"precision_changes", ordered_json()}});
  }
  for (const Comparison& one : comparisons(measurements)) {
    ordered_json& measured = json["measurements"][one.measurement];
    if (one.kind == Comparison::Kind::batch) measured["batch_changes"].push_back(json_of(one));
    if (one.kind == Comparison::Kind::setting) measured["setting_changes"] = json_of(one);
    if (one.kind == Comparison::Kind::precision) measured["precision_changes"] = json_of(one);
  }
  return json.dump(2) + '\n';
}

}  // namespace mulligan::probe
