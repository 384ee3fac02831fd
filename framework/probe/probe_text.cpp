#include "framework/probe/probe_text.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "framework/core/grouped.h"
#include "framework/probe/difference.h"

namespace mulligan::probe {
namespace {

using nlohmann::ordered_json;

struct Compared {
  LogitDifference logits;
  Divergence texts;
};

Compared compare(const BatchMeasurement& reference, const BatchMeasurement& other, std::int64_t vocabulary) {
  return {compare_logits(reference.logits, other.logits, vocabulary),
          compare_texts(reference.continued, other.continued)};
}

// "12 (3 of 4)": the earliest place, and how many texts went another way; "none".
std::string divergence_text(const Divergence& divergence) {
  if (divergence.texts == 0) return "-";
  if (divergence.diverged == 0) return "none";
  return fmt::format("{} ({} of {})", *divergence.earliest, divergence.diverged, divergence.texts);
}

std::string cells(const Compared& compared) {
  return fmt::format("{:>11.2e} {:>6} {:>14}", compared.logits.largest_over_rms, compared.logits.flips,
                     divergence_text(compared.texts));
}

ordered_json json_of(const Compared& compared) {
  const auto finite = [](double number) {
    return std::isfinite(number) ? ordered_json(number) : ordered_json();
  };
  ordered_json json = {{"largest_over_rms", finite(compared.logits.largest_over_rms)},
                       {"top1_flips", compared.logits.flips},
                       {"rows", compared.logits.rows},
                       {"texts", compared.texts.texts},
                       {"texts_diverged", compared.texts.diverged},
                       {"mean_divergence_index", compared.texts.mean_index}};
  json["earliest_divergence"] =
      compared.texts.earliest ? ordered_json(*compared.texts.earliest) : ordered_json();
  return json;
}

std::string name_of(const Measurement& measurement) {
  return measurement.threads > 0 ? fmt::format("{}, {} threads", measurement.precision, measurement.threads)
                                 : measurement.precision;
}

}  // namespace

std::string probe_text(const std::vector<Measurement>& measurements, const ProbeOptions& options) {
  std::string text = fmt::format(
      "logits of {} sequences of {} tokens, {} greedy tokens each; |d|/rms: the largest difference of a "
      "logit "
      "over the\nrms of the reference's; flips: tokens whose most probable successor changed; diverged: "
      "first "
      "place where texts differ\n\n",
      options.sequences, options.length, options.tokens);
  if (measurements.empty()) return text;
  const Measurement& first = measurements.front();
  text += fmt::format("{:<27} {:>5} | {:^33} | {:^33} | {:>14}\n", "", "",
                      fmt::format("against batch {}", options.batches.front()),
                      fmt::format("against {}", name_of(first)), "weights");
  text += fmt::format("{:<27} {:>5} | {:>11} {:>6} {:>14} | {:>11} {:>6} {:>14} | {:>14}\n", "precision",
                      "batch", "|d|/rms", "flips", "diverged", "|d|/rms", "flips", "diverged", "bytes");
  for (const Measurement& measurement : measurements) {
    for (std::size_t i = 0; i < measurement.batches.size(); ++i) {
      const BatchMeasurement& batch = measurement.batches[i];
      text += fmt::format("{:<27} {:>5} | {} | {} | {:>14}\n", name_of(measurement), batch.batch,
                          cells(compare(measurement.batches.front(), batch, measurement.vocabulary)),
                          cells(compare(first.batches[i], batch, measurement.vocabulary)),
                          grouped(measurement.weight_bytes));
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
  for (const Measurement& measurement : measurements) {
    ordered_json one = {{"precision", measurement.precision},
                        {"device", measurement.device},
                        {"threads", measurement.threads},
                        {"projection_elements", measurement.projection_elements},
                        {"other_elements", measurement.other_elements},
                        {"weight_bytes", measurement.weight_bytes},
                        {"held_bytes", measurement.held_bytes},
                        {"batches", ordered_json::array()}};
    for (std::size_t i = 0; i < measurement.batches.size(); ++i) {
      const BatchMeasurement& batch = measurement.batches[i];
      one["batches"].push_back(
          {{"batch", batch.batch},
           {"seconds", batch.seconds},
           {"against_first_batch",
            json_of(compare(measurement.batches.front(), batch, measurement.vocabulary))},
           {"against_first_measurement",
            json_of(compare(measurements.front().batches[i], batch, measurement.vocabulary))}});
    }
    json["measurements"].push_back(std::move(one));
  }
  return json.dump(2) + '\n';
}

}  // namespace mulligan::probe
