#include "tools/doctor/model_checks.h"

#include <fmt/format.h>
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

#include "framework/check/loss_probe.h"
#include "framework/core/error.h"
#include "framework/eval/evaluate.h"
#include "framework/eval/evaluator.h"
#include "framework/run/loaded_model.h"
#include "framework/run/run_ranks.h"

namespace mulligan::doctor {
namespace {

double mean_of(const float* first, std::size_t count) {
  return std::accumulate(first, first + count, 0.0) / static_cast<double>(count);
}

// The first element in which two runs differ, in bits where they must be the same.
std::optional<std::size_t> first_difference(const std::vector<float>& a, const std::vector<float>& b,
                                            bool in_bits) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool same = in_bits ? std::memcmp(&a[i], &b[i], sizeof(float)) == 0
                              : std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])) <= 1e-6;
    if (!same) return i;
  }
  return {};
}

}  // namespace

Finding check_neighbours(Backend& backend, const RunConfig& config, ComputeTypes compute) {
  constexpr std::int64_t own = 40, rest = 56;
  const bool wide = compute.activations == MLG_F32;
  const double near = wide ? 1e-5 : 2e-3, moved = wide ? 1e-4 : 3e-2;
  Finding f = begin_finding(
      "D15", "loss of a segment among others",
      fmt::format("mean: fails beyond {:.0e} nats with other neighbours, {:.0e} at another place", near,
                  moved));
  EvaluationProbe probe(backend, config, compute, vivid_weights(config.model),
                        drawn_row({own, rest}, config.model.vocabulary, 6));
  const Batch segment = drawn_row({own}, config.model.vocabulary, 5);
  const auto with = [&](std::uint64_t seed, bool behind) {
    Batch row =
        drawn_row(behind ? std::vector{rest, own} : std::vector{own, rest}, config.model.vocabulary, seed);
    const auto at = behind ? rest : 0;
    std::ranges::copy(segment.tokens, row.tokens.begin() + at);
    std::ranges::copy(segment.targets, row.targets.begin() + at);
    probe.set(row);
    probe.run();
    return mean_of(probe.token_losses().data() + at, own);
  };
  const double first = with(6, false), second = with(7, false), third = with(8, true);
  const double off_near = std::abs(second - first), off_moved = std::abs(third - first);
  f.measured = fmt::format("{:.6f} nats; {:.1e} off with other neighbours, {:.1e} at another place", first,
                           off_near, off_moved);
  if (off_near <= near && off_moved <= moved) return f;
  return failed(
      std::move(f),
      fmt::format("the loss of one and the same segment is {:.6f}, {:.6f} and {:.6f} nats, by its neighbours",
                  first, second, third),
      "attention must end at the segment's boundaries: look at cu_seqlens and at attention_fwd (--stage "
      "forward)");
}

Finding check_memory(EvaluationProbe& probe, bool repeats) {
  Finding f = begin_finding("D16", "evaluation on memory that held other things",
                            repeats ? "any bit of a token's loss fails" : "fails beyond 1e-6 nats");
  probe.run(poison_nan);
  const std::vector<float> first = probe.token_losses();
  probe.run(poison_number);
  const std::vector<float> second = probe.token_losses();
  std::uint32_t pattern = 0;
  std::memset(&pattern, poison_number, sizeof pattern);
  std::size_t unwritten = 0;
  for (std::size_t i = 0; i < first.size(); ++i)
    unwritten += std::isnan(first[i]) && std::bit_cast<std::uint32_t>(second[i]) == pattern;
  const auto different = first_difference(first, second, repeats);
  f.measured = fmt::format("{} token losses, {} of them never written, mean {:.6f} nats", second.size(),
                           unwritten, mean_of(second.data(), second.size()));
  if (!different && unwritten == 0) return f;
  return failed(
      std::move(f),
      unwritten > 0
          ? fmt::format("{} of {} token losses are what memory held before", unwritten, second.size())
          : fmt::format("the evaluation depends on buffer contents: the loss of token {} is {} once and {} "
                        "another time",
                        *different, first[*different], second[*different]),
      "a kernel is skipped, or reads what was not written: --stage forward names the first one that is off");
}

Finding check_repeated_score(const std::function<double()>& score, const std::function<void()>& disturb,
                             bool repeats) {
  const double slack = repeats ? 0 : 1e-6;
  Finding f = begin_finding("D16", "the run's evaluation before and after training used its memory",
                            repeats ? "any bit fails" : "fails beyond 1e-6 of it");
  const double first = score();
  disturb();
  const double second = score();
  f.measured = fmt::format("{:.9g} and {:.9g} nats", first, second);
  if (std::abs(first - second) <= slack * std::abs(first)) return f;
  return failed(
      std::move(f),
      fmt::format(
          "the evaluation depends on buffer contents left by training: the same tokens and weights have {:.9g} "
          "and then {:.9g} nats",
          first, second),
      "a kernel is skipped, or reads what was not written: --stage forward names the first one that is off");
}

Finding judge_modes(double training_nats, double evaluation_nats, std::optional<double> excess_nats,
                    DType compute) {
  const double slack = compute == MLG_F32 ? 1e-5 : 2e-2;
  Finding f = begin_finding("D17", "loss of one row in training and in evaluation",
                            fmt::format("fails beyond {:.0e} nats", slack));
  const double off = std::abs(training_nats - evaluation_nats);
  f.measured = fmt::format("{:.6f} and {:.6f} nats, {:.1e} apart", training_nats, evaluation_nats, off);
  if (!excess_nats && std::isfinite(training_nats) && std::isfinite(evaluation_nats)) {
    f.measured =
        fmt::format("training {:.6f}, evaluation {:.6f} nats: the training loss is not a cross entropy",
                    training_nats, evaluation_nats);
    return f;
  }
  if (off <= slack) return f;
  const bool regularised = excess_nats && *excess_nats > slack && std::isfinite(off);
  return judged(
      f, regularised ? CheckOutcome::warn : CheckOutcome::fail,
      fmt::format("training gives a row {:.6f} nats and evaluation {:.6f}{}", training_nats, evaluation_nats,
                  regularised ? ": the training loss holds a further term (D01)" : ""),
      regularised
          ? "compare no training loss with a validation loss"
          : "both are the same forward pass: look at the loss plugin and at what training does besides");
}

Finding check_modes(Backend& backend, const Loss& loss, const RunConfig& config, ComputeTypes compute,
                    const Weights& weights, const Batch& row, double evaluation_nats) {
  MicroStepProbe training(backend, loss, config, compute, weights, row);
  training.run();
  const auto vocabulary = static_cast<int>(config.model.vocabulary);
  std::optional<double> excess;
  if (loss.is_cross_entropy())
    excess = loss_values(backend, loss, vocabulary, config.model.softcap, compute.activations).equal -
             std::log(vocabulary);
  return judge_modes(training.mean_loss(), evaluation_nats, excess, compute.activations);
}

Finding check_order(Backend& backend, EvaluationProbe& probe, bool repeats) {
  Finding f = begin_finding("D18", "calls that are waited for, and calls that cannot be",
                            "any bit fails; a call that is not refused fails");
  probe.run();
  const std::vector<float> together = probe.token_losses();
  probe.memory().run_stepwise();
  const auto different = first_difference(together, probe.token_losses(), repeats);
  bool refused = false;
  try {
    Graph wrong;
    wrong.call(
        "matmul",
        {wrong.external("a", TensorType(MLG_F32, {2, 3})), wrong.external("b", TensorType(MLG_F32, {4, 5})),
         wrong.external("c", TensorType(MLG_F32, {2, 5}))},
        {{"transpose_a", 0}, {"transpose_b", 0}, {"alpha", 1}, {"beta", 0}});
    PoisonedRun(backend, wrong, "doctor/wrong").run();
  } catch (const Error&) {
    refused = true;
  }
  f.measured = fmt::format("{}; a matmul of [2, 3] and [4, 5] is {}",
                           different ? "results differ" : "the same bits", refused ? "refused" : "taken");
  if (!different && refused) return f;
  return failed(
      std::move(f),
      different
          ? fmt::format("the loss of token {} is another when the device is waited for after every call",
                        *different)
          : "a matmul of matrices that do not fit was not refused: errors are swallowed",
      different
          ? "calls of the backend overtake each other; run with its synchronous setting, where it has one"
          : "the backend must report what it cannot do, or a run learns from garbage");
}

Finding check_mean(double mean_nats, std::uint64_t tokens, const std::vector<float>& losses) {
  double sum = 0;
  for (const float loss : losses) sum += static_cast<double>(loss);
  const double mean = sum / static_cast<double>(losses.size());
  Finding f = begin_finding("D28", "mean of a score", "fails beyond 1e-9 of it, or by any token");
  f.measured = fmt::format("{:.9f} nats over {} tokens; token by token {:.9f} over {}", mean_nats, tokens,
                           mean, losses.size());
  const bool same = std::abs(mean_nats - mean) <= 1e-9 * std::abs(mean) && tokens == losses.size();
  if (same) return f;
  return failed(
      std::move(f),
      fmt::format(
          "the score of rows of different lengths is {:.6f} nats over {} tokens, but the sum over tokens by "
          "their number is {:.6f} over {}: a mean of means",
          mean_nats, tokens, mean, losses.size()),
      "sum losses and count tokens over all rows, and divide once");
}

Finding check_evaluated_mean(Backend& backend, const RunConfig& config, const Weights& weights) {
  LoadedModel model(backend, config);
  model.load([&](TensorStore& store, const std::vector<ParameterLayout>& layouts) {
    for (const ParameterLayout& layout : layouts)
      store.upload(master_name(layout.spec.name), weights.at(layout.spec.name));
  });
  EvaluatorOptions options{config.eval, scored_order(config.model)};
  options.eval.mode = EvalMode::rows;
  options.eval.sequence_length = 16;
  options.eval.packed_sequences = 2;
  options.eval.drop_remainder = false;
  BoundEvaluator scoring(model.store(), config.model, model.layouts(), options);
  Evaluator& evaluator = scoring.evaluator;

  ValidationSet tokens;
  const Batch drawn = drawn_row({2 * 32 + 5}, config.model.vocabulary, 11);
  tokens.tokens.assign(drawn.tokens.begin(), drawn.tokens.end());
  if (const auto masking = masking_options(config.model, options.bos_id)) {  // which no text has
    const auto other = static_cast<std::uint16_t>((masking->token + 1) % masking->vocabulary);
    std::ranges::replace(tokens.tokens, static_cast<std::uint16_t>(masking->token), other);
  }
  std::vector<float> losses;
  evaluator.score(tokens.tokens, nullptr, 1, 0,
                  [&](const EvalSpan& span, std::span<const float> row, std::span<const float>) {
                    losses.insert(losses.end(), row.begin() + span.score_begin, row.end());
                  });
  if (evaluator.masks()) std::erase(losses, 0.0F);  // of the tokens that were not hidden
  RunRanks alone;
  const EvalResult result = evaluate(evaluator, tokens, alone.group());
  return check_mean(result.val_loss_nats, result.tokens, losses);
}

}  // namespace mulligan::doctor
