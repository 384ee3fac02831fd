#include "lab/attention/attention_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "framework/check/poisoned_run.h"
#include "framework/core/philox.h"
#include "framework/core/statistic.h"
#include "framework/run/weights.h"
#include "lab/attention/attention_rows.h"

namespace mulligan::doctor {
namespace {

constexpr std::int64_t length = 64, width = 16, least_keys = 16;

// For a query, the first `repeats` keys of a segment have the same logit in [1, 6]; the logits of the others are 9 to 12 lower.
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

struct BiasRow {
  AttentionProblem problem;
  AttentionRule rule;
  double mean_ulp = 0, deviation_ulp = 0;
  std::int64_t rows = 0, seeds = 0;  // rows of all seeds
};

std::vector<float> in_bf16(const std::vector<float>& values) {
  return decode_weights(encode_floats(values, MLG_BF16), MLG_BF16);
}

struct Inputs {
  std::vector<float> q, k, v;  // [T, width], all bf16
};

// The logit of a key is high + low + gap, the elements of q that meet its three elements that are not 0.
Inputs draw(const AttentionProblem& problem) {
  const PhiloxStream random(problem.seed, "attention_problem");
  std::uint64_t drawn = 0;
  const auto uniform = [&](double low, double high) {
    return static_cast<float>(low + (high - low) * random.uniform(drawn++));
  };
  const auto tokens = static_cast<std::size_t>(problem.segments * length);
  std::vector<float> largest, gaps, v;
  for (std::size_t t = 0; t < tokens; ++t) {
    const bool repeated = static_cast<std::int64_t>(t) % length < problem.repeats;
    largest.push_back(uniform(1, 6));
    gaps.push_back(repeated ? 0 : uniform(-12, -9));
    for (std::int64_t j = 0; j < width; ++j)
      v.push_back(uniform(-4, -2) + (problem.small_rest && !repeated ? 2.0F : 0.0F));
  }
  const std::vector<float> high = in_bf16(largest);
  std::vector<float> low;
  for (std::size_t t = 0; t < tokens; ++t) low.push_back(largest[t] - high[t]);
  Inputs in{std::vector<float>(tokens * width), std::vector<float>(tokens * width), in_bf16(v)};
  for (std::size_t t = 0; t < tokens; ++t) {
    const std::size_t at = t * width;
    in.q[at] = high[t];
    in.q[at + 1] = low[t];
    in.q[at + 2] = in.k[at] = in.k[at + 1] = 1;
    in.k[at + 2] = gaps[t];
  }
  in.q = in_bf16(in.q);
  in.k = in_bf16(in.k);
  return in;
}

// The mean signed error over the queries with at least 16 keys before them. If problem.repeats is 1, a single maximum is replaced,
// too.
AttentionRowsSeen measure_bias(Backend& backend, const AttentionProblem& problem, const AttentionRule& rule) {
  const std::int64_t tokens = problem.segments * length;
  const TensorType rows(MLG_BF16, {tokens, 1, width});
  Graph graph;
  const Value o = graph.external("o", rows);
  graph.call("attention_stable_fwd",
             {graph.external("q", rows), graph.external("k", rows), graph.external("v", rows),
              graph.external("cu_seqlens", TensorType(MLG_I32, {problem.segments + 1})), o,
              graph.external("lse", TensorType(MLG_F32, {tokens, 1}))},
             {{"softmax_scale", 1},
              {"beta", rule.beta > 0 ? rule.beta : 1},
              {"tolerance", 1e-3},
              {"min_repeats", rule.beta > 0 ? std::min(2.0, static_cast<double>(problem.repeats)) : 0},
              {"cap", 20},
              {"round_normalizer", rule.round_normalizer ? 1.0 : 0.0},
              {"round_sums", rule.round_sums ? 1.0 : 0.0}});
  PoisonedRun run(backend, graph, "attention problem");
  const Inputs in = draw(problem);
  std::vector<std::int32_t> boundaries;
  for (std::int64_t i = 0; i <= problem.segments; ++i)
    boundaries.push_back(static_cast<std::int32_t>(i * length));
  run.set("q", in.q);
  run.set("k", in.k);
  run.set("v", in.v);
  run.set("cu_seqlens", boundaries);
  run.run(poison_nan);
  AttentionCallValues call;
  call.heads = call.kv_heads = 1;
  call.width = width;
  call.q.assign(in.q.begin(), in.q.end());
  call.k.assign(in.k.begin(), in.k.end());
  call.v.assign(in.v.begin(), in.v.end());
  call.boundaries.assign(boundaries.begin(), boundaries.end());
  call.o = run.numbers(o);
  call.least_keys = least_keys;
  return look_at_rows(call, tokens);
}

BiasRow measure_row(Backend& backend, const AttentionProblem& problem, const AttentionRule& rule,
                    std::int64_t seeds) {
  BiasRow row{problem, rule};
  row.seeds = seeds;
  std::vector<double> biases;
  for (std::int64_t seed = 1; seed <= seeds; ++seed) {
    row.problem.seed = static_cast<std::uint64_t>(seed);
    const AttentionRowsSeen seen = measure_bias(backend, row.problem, rule);
    biases.push_back(seen.record.error_ulp);
    row.rows += seen.rows;
  }
  const Statistic statistic = statistic_of(biases);
  row.mean_ulp = statistic.mean;
  row.deviation_ulp = statistic.deviation.value_or(0);
  return row;
}

std::string bias_text(const std::vector<BiasRow>& rows, const std::vector<double>& betas) {
  std::string text = "| rounded | values | maxima | off |", line = "|---|---|---|---|";
  for (const double beta : betas) {
    text += fmt::format(" beta {} |", beta);
    line += "---|";
  }
  if (!betas.empty()) {
    text += fmt::format(" beta {}, rounded normalizer |", betas.front());
    line += "---|";
  }
  text += " n |\n" + line + "---|\n";
  const std::size_t columns = betas.empty() ? 1 : betas.size() + 2;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const BiasRow& row = rows[i];
    if (i % columns == 0) {
      text +=
          fmt::format("| {} | {} | {} |", row.rule.round_sums ? "sums" : "once",
                      row.problem.small_rest ? "the others' smaller" : "of one sign", row.problem.repeats);
    }
    text += fmt::format(" {:+.3f} ± {:.3f} |", row.mean_ulp, row.deviation_ulp);
    if (i % columns == columns - 1) text += fmt::format(" {} |\n", row.seeds);
  }
  return text;
}

std::string bias_json(const std::vector<BiasRow>& rows) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const BiasRow& row : rows) {
    json.push_back({{"output_rounding", row.rule.round_sums ? "sums" : "once"},
                    {"values", row.problem.small_rest ? "small_rest" : "one_sign"},
                    {"maxima", row.problem.repeats},
                    {"beta", row.rule.beta},
                    {"normalizer", row.rule.round_normalizer ? "rounded" : "exact"},
                    {"bias_ulp", row.mean_ulp},
                    {"deviation_ulp", row.deviation_ulp},
                    {"rows", row.rows},
                    {"seeds", row.seeds}});
  }
  return json.dump(1);
}

}  // namespace

BiasTables measure_biases(Backend& backend, const std::vector<double>& betas, std::int64_t segments,
                          std::int64_t seeds) {
  std::vector<BiasRow> rows;
  for (const bool round_sums : {true, false}) {
    for (const bool small_rest : {false, true}) {
      for (std::int64_t repeats = 1; repeats <= 4; ++repeats) {
        const auto add = [&](double beta, bool round_normalizer) {
          rows.push_back(measure_row(backend, {segments, repeats, small_rest, 1},
                                     {beta, round_normalizer, round_sums}, seeds));
        };
        add(0, false);
        for (const double beta : betas) add(beta, false);
        if (!betas.empty()) add(betas.front(), true);
      }
    }
  }
  return {bias_text(rows, betas), bias_json(rows)};
}

}  // namespace mulligan::doctor
