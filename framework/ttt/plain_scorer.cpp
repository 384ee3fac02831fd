#include "framework/ttt/plain_scorer.h"

#include <algorithm>
#include <chrono>

namespace mulligan {
namespace {

EvaluatorOptions evaluator_options(const BaseModel& model, const RunConfig& config, int bos_id) {
  EvaluatorOptions options;
  options.eval = config.eval;
  options.eval.mode = EvalMode::rows;
  options.eval.drop_remainder = false;
  options.compute = model.compute;
  options.looping = model.looping;
  options.bos_id = bos_id;
  return options;
}

}  // namespace

PlainScorer::PlainScorer(const BaseModel& model, const RunConfig& config, int bos_id)
    : evaluator_(model.store, model.config, model.layouts, evaluator_options(model, config, bos_id)),
      arena_(model.store.backend()) {
  arena_.bind({&evaluator_.program()}, model.store);
}

std::vector<float> PlainScorer::losses(std::span<const std::uint16_t> tokens, double& seconds) {
  std::vector<float> losses(tokens.size());
  const auto start = std::chrono::steady_clock::now();
  evaluator_.score(tokens, nullptr, 1, 0, [&](const EvalSpan& span, std::span<const float> row) {
    std::ranges::copy(row, losses.begin() + span.start + 1);
  });
  seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return losses;
}

}  // namespace mulligan
