// A model's logits and greedy continuations in batches of several sizes, and the differences between two computations of them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/plugin/plugin_host.h"
#include "framework/report/console.h"
#include "framework/run/loaded_model.h"
#include "framework/run/weight_origin.h"

namespace mulligan::probe {

struct ProbeOptions : ConsoleOptions {
  std::vector<std::int64_t> batches = {1, 3, 8, 32};  // the others are compared with the first
  std::int64_t sequences = 4;                         // of the validation set, at equal distances
  std::int64_t length = 128;                          // tokens of a sequence
  std::int64_t prompt = 32;                           // of them before a continuation
  std::int64_t tokens = 256;                          // of a continuation; 0: none is made
  bool evaluate = false;                              // score the validation set as well
  bool first_batch_alone = false;                     // of the batch sizes, with the same sequences
};

// The storage of the weights and the compute dtype: "fp32", "bf16", "fp16", "layercast-bf16", "layercast-fp16". Throws
// config_error for another word; the message lists these.
void require_precision(const std::string& name);

// Of one batch size.
struct BatchMeasurement {
  std::int64_t batch = 0;
  std::vector<float> logits;                         // [sequences, length, vocabulary]
  std::vector<std::vector<std::int32_t>> continued;  // [sequences][tokens], each the most probable token
};

struct Measurement {
  std::string precision;
  std::string setting;  // what the caller changed besides: "run.fused_kernels=false"; "": nothing
  std::string device;   // the backend's own words
  std::int64_t vocabulary = 0;
  std::int64_t projection_elements = 0, other_elements = 0;
  std::int64_t weight_bytes = 0;        // of the weights as kernels read them
  std::int64_t held_bytes = 0;          // with masters that are there besides
  std::optional<double> val_bpb;        // of the whole validation set, where it was asked for
  double scored_tokens_per_second = 0;  // of that
  std::vector<BatchMeasurement> batches;
};

// For logits, each sequence is the last of a batch of the others. For continuations, neighbouring sequences are continued
// together. `loaded` is scored in `precision`, not in that of its last phase. Throws config_error, data_error (a validation set
// that is too short), run_error (logits that are not finite).
Measurement measure(LoadedConfig& loaded, PluginHost& host, const WeightOrigin& origin,
                    const WeightLoader& load, const std::string& precision, const ProbeOptions& options);

struct LogitDifference {
  // The largest |difference| of two logits divided by the root of the mean square of the reference's logits.
  double largest_over_rms = 0;
  std::int64_t flips = 0;  // rows with another largest logit
  std::int64_t rows = 0;
};

// Both are [rows, vocabulary]. For equal logits the lower token counts as the largest. If a logit is not finite on one side
// only, the difference is infinite. Throws std::logic_error if the sizes differ or are not whole rows.
LogitDifference compare_logits(std::span<const float> reference, std::span<const float> other,
                               std::int64_t vocabulary);

// Of several texts, each with a continuation of equal length.
struct Divergence {
  std::int64_t texts = 0, diverged = 0;
  // Of the first place where both differ; a text that did not diverge counts with its length, as the published index does.
  double mean_index = 0;
};
Divergence compare_texts(const std::vector<std::vector<std::int32_t>>& reference,
                         const std::vector<std::vector<std::int32_t>>& other);

// The computations of a probe that are compared.
struct Comparison {
  std::size_t measurement = 0;  // its index
  enum class Kind { batch, setting, precision } kind = Kind::batch;
  std::string what;  // "batch 8 to batch 1", "run.fused_kernels=false", "to fp32"
  LogitDifference logits;
  Divergence texts;
};

// Compares each measurement's batch sizes with its first batch size. A measurement of a setting is compared with the
// measurement of the same precision without a setting, at the first batch size; any other one with the first precision.
// The results are in the order of the measurements. Precondition: the first measurement has no setting, and each
// precision has one without.
std::vector<Comparison> comparisons(const std::vector<Measurement>& measurements);

// A Markdown table of runs with the same measurements: mean, standard deviation and n. A row for each comparison; a row for each
// precision has the bytes of its weights and, if requested, its score. Flips count per thousand tokens; a text that does not
// diverge counts with its length.
std::string probe_markdown(const std::vector<std::vector<Measurement>>& runs, const ProbeOptions& options);
// Of one run, named `weights`.
std::string probe_json(const std::vector<Measurement>& measurements, const ProbeOptions& options,
                       const std::string& weights);

}  // namespace mulligan::probe
