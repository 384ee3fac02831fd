#include "framework/ttt/score_transform.h"

#include <algorithm>
#include <cmath>

#include "framework/check/transform_probe.h"
#include "framework/core/error.h"
#include "framework/ttt/ttt_scorer.h"

namespace mulligan {

double transformed_loss(double loss, std::int32_t target, std::span<const mlg_bias> proposal,
                        std::span<const double> proposed_losses) {
  if (proposal.empty()) return loss;
  // The bias of the target; the probability of what is proposed, before and after.
  double own = 0, share = 0, raised = 0;
  for (std::size_t i = 0; i < proposal.size(); ++i) {
    const double probability = std::min(1.0, std::exp(-proposed_losses[i]));
    share += probability;
    raised += probability * std::exp(proposal[i].bias);
    if (proposal[i].token == target) own = proposal[i].bias;
  }
  return loss - own + std::log(std::max(0.0, 1.0 - share) + raised);
}

TransformFeed::TransformFeed(const Transform& transform, TransformOrder order,
                             std::span<const std::uint16_t> tokens, const DocumentPlan& plan,
                             std::int64_t vocabulary, std::int64_t places)
    : transform_(transform),
      order_(order),
      tokens_(tokens),
      plan_(plan),
      vocabulary_(vocabulary),
      places_(places),
      documents_(static_cast<std::size_t>(places)) {
  if (order != TransformOrder::file) return;
  // The whole stream as one text without documents, its first token included in nothing: what the record does.
  const auto stream = open(std::ssize(tokens) - 1, 1);
  for (std::int64_t target = 1; target < std::ssize(tokens); ++target) {
    for (const mlg_bias& bias : stream->propose(0)) {
      file_targets_.push_back(target);
      file_biases_.push_back(bias);
    }
    stream->observe(0, token(target));
  }
}

void TransformFeed::enter_lane(std::int64_t lane) {
  if (order_ != TransformOrder::queue) return;
  auto& stream = lanes_[lane];
  if (!stream) stream = open(std::ssize(tokens_) - 1, places_);
  lane_ = stream.get();
}

void TransformFeed::propose(const PlannedBatch& batch, std::int64_t chunk, const Proposed& proposed) {
  const bool by_document = order_ == TransformOrder::document;
  for (std::size_t place = 0; place < batch.documents.size(); ++place) {
    const int number = batch.documents[place];
    const auto [first, last] = plan_.range(batch, number, chunk);
    if (first == last) continue;
    if (order_ == TransformOrder::file) {
      for (std::int64_t target = first; target < last; ++target) {
        const auto found = std::ranges::equal_range(file_targets_, target);
        proposed(place, target,
                 {file_biases_.data() + (found.begin() - file_targets_.begin()), found.size()});
      }
      continue;
    }
    if (by_document && chunk == 0) documents_[place] = open(plan_.targets(number), 1);
    Transform::Stream& stream = by_document ? *documents_[place] : *lane_;
    const auto in_stream = static_cast<std::int64_t>(by_document ? 0 : place);
    if (chunk == 0) stream.begin(in_stream, token(plan_.document(number).start));
    for (std::int64_t target = first; target < last; ++target) {
      proposed(place, target, stream.propose(in_stream));
      stream.observe(in_stream, token(target));
    }
  }
}

// The score transform of a run: what it proposes for the tokens of a turn, and the losses that follow.

// Refused before anything is scored: proposals that know what they propose for.
void TttScorer::prepare_transform() {
  if (!setup_.transform) return;
  const std::string problem = transform_problem(*setup_.transform, model_.config.vocabulary);
  config_error_if(!problem.empty(),
                  "[ttt.transform]: with {} {}, and its scores would be illegal; use another plugin.",
                  setup_.transform->plugin().description(), problem);
  feed_ = std::make_unique<TransformFeed>(*setup_.transform, setup_.transform_order, data_.tokens, plan_,
                                          model_.config.vocabulary, setup_.config.batch_documents);
  plain_book_.assign(data_.tokens.size(), 0.0F);
}

void TttScorer::propose(Turn& turn) {
  if (!feed_) return;
  turn.proposals.assign(turn.targets.size(), {});
  feed_->propose(turn.batch, turn.chunk,
                 [&](std::size_t place, std::int64_t target, std::span<const mlg_bias> proposal) {
                   const std::size_t slot = place - turn.finished();
                   turn.proposals[turn.score_of(slot, target)] = {proposal.begin(), proposal.end()};
                 });
  for (std::size_t number = 0; number < static_cast<std::size_t>(setup_.proposals()); ++number) {
    std::vector<std::int32_t> tokens;
    for (const auto& proposal : turn.proposals)
      tokens.push_back(number < proposal.size() ? proposal[number].token : -1);
    turn.program.set_proposal(static_cast<int>(number), tokens);
  }
}

// The losses that are booked, from those that the model gives.
void TttScorer::apply_proposals(Turn& turn, const SuffixCheck::Scores& scores) {
  turn.losses = scores.losses;
  if (!feed_) return;
  turn.plain_losses = scores.losses;
  for (std::size_t i = 0; i < turn.losses.size(); ++i) {
    const std::vector<mlg_bias>& proposal = turn.proposals[i];
    std::vector<double> proposed;
    for (std::size_t number = 0; number < proposal.size(); ++number)
      proposed.push_back(static_cast<double>(scores.proposed[number][i]));
    turn.losses[i] = static_cast<float>(
        transformed_loss(static_cast<double>(turn.losses[i]), turn.targets[i], proposal, proposed));
  }
}

}  // namespace mulligan
