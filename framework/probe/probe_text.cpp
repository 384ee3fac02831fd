#include "framework/probe/probe_text.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "framework/core/grouped.h"
#include "framework/core/statistic.h"
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

namespace {

// "1.23e-05 ± 4.5e-06", "0", "2.0312 ± 0.0021".
std::string spread(const std::vector<double>& values, const char* kind) {
  const Statistic statistic = statistic_of(values);
  const auto number = [&](double value) {
    return *kind == 'e' ? (value == 0 ? "0" : fmt::format("{:.1e}", value))
                        : fmt::format("{:.{}f}", value, *kind - '0');
  };
  if (!statistic.deviation || (statistic.mean == 0 && *statistic.deviation == 0))
    return number(statistic.mean);
  return fmt::format("{} ± {}", number(statistic.mean), number(*statistic.deviation));
}

// The three cells of a comparison over runs.
std::string spread_cells(const std::vector<Compared>& compared) {
  std::vector<double> largest, flips, index;
  for (const Compared& one : compared) {
    largest.push_back(one.logits.largest_over_rms);
    flips.push_back(1000.0 * static_cast<double>(one.logits.flips) / static_cast<double>(one.logits.rows));
    index.push_back(one.texts.mean_index);
  }
  return fmt::format("{} | {} | {}", spread(largest, "e"), spread(flips, "2"), spread(index, "1"));
}

}  // namespace

std::string probe_markdown(const std::vector<std::vector<Measurement>>& runs, const ProbeOptions& options) {
  const std::vector<Measurement>& shape = runs.front();
  std::string text = fmt::format(
      "n = {} runs; logits of {} sequences of {} tokens each, {} greedy tokens each; mean ± standard "
      "deviation "
      "over the runs. |d|/rms: the largest difference of a logit over the rms of the reference's. Flips: per "
      "1,000 tokens. Index: first place where greedy texts differ, {} where they do not.\n\n",
      runs.size(), options.sequences, options.length, options.tokens, options.tokens);
  text += fmt::format(
      "| precision | batch | |d|/rms to batch {0} | flips | index | |d|/rms to {1} | flips | index | "
      "weights, "
      "bytes | val_bpb | scored tokens/s |\n|---|---|---|---|---|---|---|---|---|---|---|\n",
      options.batches.front(), name_of(shape.front()));
  for (std::size_t m = 0; m < shape.size(); ++m) {
    for (std::size_t b = 0; b < shape[m].batches.size(); ++b) {
      std::vector<Compared> within, across;
      std::vector<double> bpb, speed;
      for (const std::vector<Measurement>& run : runs) {
        const Measurement& one = run[m];
        within.push_back(compare(one.batches.front(), one.batches[b], one.vocabulary));
        across.push_back(compare(run.front().batches[b], one.batches[b], one.vocabulary));
        if (one.val_bpb) bpb.push_back(*one.val_bpb);
        speed.push_back(one.scored_tokens_per_second);
      }
      const bool first = b == 0 && !bpb.empty();  // what has no batch size of the probe is said once
      text += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", name_of(shape[m]),
                          shape[m].batches[b].batch, b == 0 ? "- | - | -" : spread_cells(within),
                          m == 0 ? "- | - | -" : spread_cells(across),
                          b == 0 ? grouped(shape[m].weight_bytes) : "", first ? spread(bpb, "4") : "",
                          first ? spread(speed, "0") : "");
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
    ordered_json one = {
        {"precision", measurement.precision},
        {"device", measurement.device},
        {"threads", measurement.threads},
        {"projection_elements", measurement.projection_elements},
        {"other_elements", measurement.other_elements},
        {"weight_bytes", measurement.weight_bytes},
        {"held_bytes", measurement.held_bytes},
        {"val_bpb", measurement.val_bpb ? ordered_json(*measurement.val_bpb) : ordered_json()},
        {"scored_tokens_per_second", measurement.scored_tokens_per_second},
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
