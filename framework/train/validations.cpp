#include "framework/train/validations.h"

#include <algorithm>

#include "framework/eval/evaluator.h"
#include "framework/run/strict_rules.h"

namespace mulligan {

void Validations::open(const RunConfig& config, RunLog& log) {
  if (config.data.validation.empty()) return;
  set_ = std::make_unique<ValidationSet>(
      load_validation(config.data, config.model.vocabulary, config.eval.tokens));
  require_strict_validation(config, *set_);
  log.print("validation: {} tokens", set_->tokens.size());
  if (!set_->byte_note.empty()) log.line(set_->byte_note);
}

bool Validations::due(const TrainConfig& train, double budget_fraction, std::int64_t steps) {
  const std::int64_t every = train.validate_every, shares = train.validations;
  const auto reached =
      std::min(shares, static_cast<std::int64_t>(budget_fraction * static_cast<double>(shares + 1)));
  const bool by_share = reached > shares_done_;
  shares_done_ = std::max(shares_done_, reached);
  const bool listed =
      std::ranges::find(train.validate_at, static_cast<double>(steps)) != train.validate_at.end();
  return by_share || listed || (every > 0 && steps % every == 0);
}

EvalResult Validations::score(Evaluator& evaluator, HostGroup& group, RunLog& log) {
  const auto tokens = static_cast<double>(set_->tokens.size() - 1);
  Progress progress(&log, {.what = "evaluation", .unit = "tokens", .total = tokens});
  EvaluateHooks hooks;
  hooks.passed = [&](const EvalPosition& position, std::size_t rows) {
    progress.set(evaluator.passed_tokens(position, rows, tokens));
  };
  return evaluate(evaluator, *set_, group, hooks);
}

}  // namespace mulligan
