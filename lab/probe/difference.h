// Differences between two computations of the same thing: logits, and greedy continuations of texts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lab/probe/measure.h"

namespace mulligan::probe {

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

// The first place where two continuations of equal length differ; absent if they do not.
std::optional<std::int64_t> divergence_index(std::span<const std::int32_t> reference,
                                             std::span<const std::int32_t> other);

// Of several texts.
struct Divergence {
  std::int64_t texts = 0, diverged = 0;
  std::optional<std::int64_t> earliest;  // of those that diverged
  double mean_index = 0;  // a text that did not diverge counts with its length, as the published index does
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
