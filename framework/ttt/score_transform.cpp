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
  double own = 0, share = 0,
         raised = 0;  // bias of the target; probability of what is proposed, before and after
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
      documents_(order == TransformOrder::document ? static_cast<std::size_t>(places) : 0) {
  if (order == TransformOrder::file) read_file();
}

std::unique_ptr<Transform::Stream> TransformFeed::open(std::int64_t tokens, std::int64_t places) const {
  return transform_.open({vocabulary_, tokens, places});
}

// The whole stream as one text without documents, its first token included in nothing: what the record does.
void TransformFeed::read_file() {
  const auto stream = open(static_cast<std::int64_t>(tokens_.size()) - 1, 1);
  for (std::int64_t target = 1; target < static_cast<std::int64_t>(tokens_.size()); ++target) {
    for (const mlg_bias& bias : stream->propose(0)) file_.push_back({target, bias});
    stream->observe(0, token(target));
  }
}

std::span<const mlg_bias> TransformFeed::of_file(std::int64_t target) {
  found_.clear();
  for (auto hint = std::ranges::lower_bound(file_, target, {}, &Hint::target);
       hint != file_.end() && hint->target == target; ++hint) {
    found_.push_back(hint->bias);
  }
  return found_;
}

void TransformFeed::enter_lane(std::int64_t lane) {
  if (order_ != TransformOrder::queue) return;
  auto& stream = lanes_[lane];
  if (!stream) stream = open(static_cast<std::int64_t>(tokens_.size()) - 1, places_);
  lane_ = stream.get();
}

void TransformFeed::begin(std::int64_t place, int number) {
  if (order_ == TransformOrder::file) return;
  const Document& document = plan_.document(number);
  if (order_ == TransformOrder::document)
    documents_[static_cast<std::size_t>(place)] = open(plan_.targets(number), 1);
  const Reader reader = stream_of(place);
  reader.stream->begin(reader.place, token(document.start));
}

TransformFeed::Reader TransformFeed::stream_of(std::int64_t place) const {
  if (order_ == TransformOrder::document) return {documents_[static_cast<std::size_t>(place)].get(), 0};
  return {lane_, place};
}

// The score transform of a run: what it proposes for the tokens of a turn, and the losses that follow.

// Refused before anything is scored: proposals that know what they propose for.
void TttScorer::prepare_transform() {
  if (!setup_.transform) return;
  const std::string problem = transform_problem(*setup_.transform, model_.config.vocabulary);
  if (!problem.empty()) {
    throw config_error("[ttt.transform]: with {} {}, and its scores would be illegal; use another plugin.",
                       setup_.transform->plugin().description(), problem);
  }
  feed_ = std::make_unique<TransformFeed>(*setup_.transform, setup_.transform_order, data_.tokens, plan_,
                                          model_.config.vocabulary, setup_.config.batch_documents);
  plain_book_.assign(data_.tokens.size(), 0.0F);
}

// In the order of scoring: document by document within a chunk. The places of a batch are its slots.
void TttScorer::propose(const Turn& turn) {
  if (!feed_) return;
  proposals_.assign(losses_.size(), {});
  const auto scored = static_cast<std::size_t>(turn.program.shape().scored);
  const std::size_t finished = turn.batch.batch.documents.size() - turn.documents.size();
  for (std::size_t slot = 0; slot < turn.rows.size(); ++slot) {
    const Turn::Row& row = turn.rows[slot];
    if (!row.active) continue;
    const auto place = static_cast<std::int64_t>(finished + slot);
    const int number = turn.documents[slot];
    if (turn.chunk == 0) feed_->begin(place, number);
    const std::int64_t first =
        plan_.document(number).start + row.window.window_start + row.window.chunk_offset + 1;
    feed_->propose(place, first, row.window.chunk_length,
                   [&](std::int64_t target, std::span<const mlg_bias> proposal) {
                     proposals_[slot * scored + static_cast<std::size_t>(target - first)] = {proposal.begin(),
                                                                                             proposal.end()};
                   });
  }
  std::vector<std::int32_t> tokens(proposals_.size());
  for (int number = 0; number < setup_.transform->biases(); ++number) {
    const auto one = static_cast<std::size_t>(number);
    std::ranges::transform(proposals_, tokens.begin(), [&](const std::vector<mlg_bias>& proposal) {
      return one < proposal.size() ? proposal[one].token : -1;
    });
    turn.program.set_proposal(number, tokens);
  }
}

// The losses that are booked; as the model gives them in plain_losses_.
void TttScorer::apply_proposals(const SuffixCheck::Scores& scores) {
  losses_ = scores.losses;
  if (!feed_) return;
  plain_losses_ = scores.losses;
  double of_one[MLG_TRANSFORM_BIASES];
  for (std::size_t i = 0; i < losses_.size(); ++i) {
    const std::size_t count = proposals_[i].size();
    if (count == 0) continue;
    for (std::size_t number = 0; number < count; ++number)
      of_one[number] = static_cast<double>(scores.proposed[number][i]);
    losses_[i] = static_cast<float>(transformed_loss(static_cast<double>(losses_[i]), targets_[i],
                                                     proposals_[i], std::span(of_one).first(count)));
  }
}

// What an interrupted run had told the transform of a batch that is done, in the same order.
void TttScorer::replay_transform(std::int64_t queue) {
  if (!feed_) return;
  feed_->enter_lane(lanes_.lanes[static_cast<std::size_t>(queue)]);
  const PlannedBatch& batch = plan_.queue[static_cast<std::size_t>(queue)];
  for (std::int64_t chunk = 0; chunk < batch.chunks; ++chunk) {
    for (std::size_t slot = 0; slot < batch.batch.documents.size(); ++slot) {
      const int number = batch.batch.documents[slot];
      const std::int64_t begin = chunk * batch.chunk_tokens;
      const std::int64_t length = std::min(batch.chunk_tokens, plan_.targets(number) - begin);
      if (length <= 0) continue;
      if (chunk == 0) feed_->begin(static_cast<std::int64_t>(slot), number);
      feed_->propose(static_cast<std::int64_t>(slot), plan_.document(number).start + begin + 1, length,
                     [](std::int64_t, std::span<const mlg_bias>) {});
    }
  }
}

}  // namespace mulligan
