// Replacements for an evaluation without a score transform.
#include "framework/core/error.h"
#include "framework/ttt/ttt_scorer.h"
#include "launch/evaluator/scoring.h"

namespace mulligan {

std::unique_ptr<Transform> score_transform(const EvaluationSettings& settings) {
  if (settings.transform.name.empty()) return {};
  throw config_error(
      "this evaluator was built without score transforms; build it from the artifact's own files.");
}
void TttScorer::prepare_transform() {}
void TttScorer::propose(Turn&) {}
void TttScorer::apply_proposals(Turn& turn, const SuffixCheck::Scores& scores) {
  turn.losses = scores.losses;
}
void TransformFeed::enter_lane(std::int64_t) {}
void TransformFeed::propose(const PlannedBatch&, std::int64_t, const Proposed&) {}

}  // namespace mulligan
