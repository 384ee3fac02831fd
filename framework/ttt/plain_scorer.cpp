#include "framework/ttt/plain_scorer.h"

#include <algorithm>

namespace mulligan {

namespace {

EvaluatorOptions evaluator_options(const BaseModel& model, const RunConfig& config, int bos_id) {
  EvaluatorOptions options;
  options.eval = config.eval;
  options.eval.mode = EvalMode::rows;
  options.eval.drop_remainder = false;
  options.compute = model.compute;
  options.layer_order = model.layer_order;
  options.bos_id = bos_id;
  return options;
}

}  // namespace

PlainScorer::PlainScorer(const BaseModel& model, const RunConfig& config, int bos_id)
    : evaluator_(model.store, model.config, model.layouts, evaluator_options(model, config, bos_id)),
      arena_(model.store.backend()) {
  arena_.bind({&evaluator_.program()}, model.store);
}

void PlainScorer::score(std::span<const std::uint16_t> tokens, std::vector<float>& losses, std::size_t from,
                        const Evaluator::PassListener& passed, int world_size, int rank) {
  const auto listen = [&](const EvalSpan& span, std::span<const float> row) {
    std::ranges::copy(row, losses.begin() + span.start + 1);
  };
  evaluator_.score(tokens, nullptr, world_size, rank, listen, passed, {from, {}});
}

}  // namespace mulligan
