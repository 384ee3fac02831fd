// Attention's rounding on an artificial problem, where each query's largest logit occurs several times. It measures the bias of
// the results relative to the exact ones (docs/numerics/attention_bias.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/plugin/backend.h"
#include "lab/attention/attention_rows.h"

namespace mulligan::doctor {

// Segments of 64 tokens, one head of width 16, bf16. For a query, the first `repeats` keys of a segment have the same logit in
// [1, 6]; the logits of the others are 9 to 12 lower.
struct AttentionProblem {
  std::int64_t segments = 300, repeats = 2;
  bool small_rest = false;  // the other keys' values lie in (-2, 0]; otherwise all values lie in (-4, -2]
  std::uint64_t seed = 1;
};

// Attributes of attention_stable_fwd.
struct AttentionRule {
  double beta = 0;  // 0: off, no maximum is replaced
  bool round_normalizer = false, round_sums = false;
};

// The mean signed error over the queries with at least 16 keys before them. If problem.repeats is 1, a single maximum is replaced,
// too. Throws Error as a Program does.
AttentionRowsSeen measure_bias(Backend& backend, const AttentionProblem& problem, const AttentionRule& rule);

// Mean, standard deviation and number of the seeds' biases.
struct BiasRow {
  AttentionProblem problem;
  AttentionRule rule;
  double mean_ulp = 0, deviation_ulp = 0;
  std::int64_t rows = 0, seeds = 0;  // rows of all seeds
};
struct BiasTable {
  std::vector<BiasRow> rows;
  std::vector<double> betas;
};
// Both kinds of values, 1 to 4 maxima, both roundings; off, each of `betas`, and the first of them with the
// rounded normalizer. Seeds 1 to `seeds`.
BiasTable measure_biases(Backend& backend, const std::vector<double>& betas, std::int64_t segments,
                         std::int64_t seeds);
// As a Markdown table; as a list of objects.
std::string bias_text(const BiasTable& table);
std::string bias_json(const BiasTable& table);

}  // namespace mulligan::doctor
