// Attention's rounding on an artificial problem, where each query's largest logit occurs several times. It measures the bias of
// the results relative to the exact ones (docs/numerics/attention_bias.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/plugin/backend.h"

namespace mulligan::doctor {

// Mean, standard deviation and number of the seeds' biases, as a Markdown table and as a JSON list of objects.
struct BiasTables {
  std::string markdown, json;
};
// Both kinds of values, 1 to 4 maxima, both roundings; off, each of `betas`, and the first of them with the rounded normalizer.
// Segments of 64 tokens, one head of width 16, bf16. Seeds 1 to `seeds`. Throws Error as a Program does.
BiasTables measure_biases(Backend& backend, const std::vector<double>& betas, std::int64_t segments,
                          std::int64_t seeds);

}  // namespace mulligan::doctor
