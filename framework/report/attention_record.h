// The contents of an event "attention" of metrics.jsonl (docs/numerics/attention_bias.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mulligan {

// One call of attention, over the rows (a query of one head) of a short row of tokens.
struct AttentionLayerRecord {
  std::int64_t slot = 0;                // execution slot
  double largest_logit = 0;             // of softmax's inputs
  double repeated_rows = 0;             // share of rows whose maximum occurs more than once
  double error_ulp = 0;                 // mean signed error of the result, in its units in the last place
  double error_standard_error_ulp = 0;  // of that mean, over the rows
  // With delta = the rows' sums of (gradient of the result * result): the norm of the difference between that
  // of the stored result and that of the exact one, and the norm of the exact one.
  std::optional<double> delta_error, delta_norm;
};

struct AttentionRecord {
  std::int64_t step = 0;
  std::int64_t rows = 0;  // of each layer, that were looked at
  std::vector<AttentionLayerRecord> layers;
  std::vector<std::pair<std::string, double>> spectral_norms;  // largest singular value, by weight
};

// One object, without a line break.
std::string attention_json(const AttentionRecord& record);

}  // namespace mulligan
