#include "tools/doctor/score_checks.h"

#include <algorithm>

#include "framework/eval/evaluate.h"
#include "framework/eval/evaluator.h"
#include "framework/eval/masking_options.h"
#include "framework/run/loaded_model.h"
#include "framework/run/run_ranks.h"
#include "tools/doctor/evaluation_checks.h"

namespace mulligan::doctor {

Finding check_evaluated_mean(Backend& backend, const RunConfig& config, const Weights& weights) {
  LoadedModel model(backend, config);
  model.load([&](TensorStore& store, const std::vector<ParameterLayout>& layouts) {
    for (const ParameterLayout& layout : layouts)
      store.upload(master_name(layout.spec.name), weights.at(layout.spec.name));
  });
  EvaluatorOptions options;
  options.eval = config.eval;
  options.eval.mode = EvalMode::rows;
  options.eval.sequence_length = 16;
  options.eval.packed_sequences = 2;
  options.eval.drop_remainder = false;
  options.compute = model.compute();
  options.layer_order = scored_order(config.model);
  Evaluator evaluator(model.store(), config.model, model.layouts(), options);
  SharedArena arena(backend);
  arena.bind({&evaluator.program()}, model.store());

  ValidationSet tokens;
  const Batch drawn = drawn_row({2 * 32 + 5}, config.model.vocabulary, 11);
  tokens.tokens.assign(drawn.tokens.begin(), drawn.tokens.end());
  if (const auto masking = masking_options(config.model, options.bos_id)) {  // which no text has
    const auto other = static_cast<std::uint16_t>((masking->token + 1) % masking->vocabulary);
    std::ranges::replace(tokens.tokens, static_cast<std::uint16_t>(masking->token), other);
  }
  std::vector<float> losses;
  evaluator.score(tokens.tokens, nullptr, 1, 0, [&](const EvalSpan& span, std::span<const float> row) {
    losses.insert(losses.end(), row.begin() + span.score_begin, row.end());
  });
  if (evaluator.masks()) std::erase(losses, 0.0F);  // of the tokens that were not hidden
  RunRanks alone;
  const EvalResult result = evaluate(evaluator, tokens, alone.group());
  return check_mean({result.val_loss_nats, result.tokens}, losses);
}

}  // namespace mulligan::doctor
