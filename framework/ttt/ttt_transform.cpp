// The score transform of a run: what is proposed for the tokens of a turn, and what that makes of their
// losses.
#include <algorithm>

#include "framework/check/transform_probe.h"
#include "framework/core/error.h"
#include "framework/ttt/ttt_run.h"

namespace mulligan {

// Refused before anything is scored: proposals that know what they propose for.
void TttRun::prepare_transform() {
  if (!setup_.transform) return;
  const std::string problem = transform_problem(*setup_.transform, model_.config.vocabulary);
  if (!problem.empty()) {
    throw config_error("[ttt.transform]: with {} {}, and its scores would be illegal; use another plugin.",
                       setup_.transform->plugin().description(), problem);
  }
  if (setup_.blind && setup_.transform_order == TransformOrder::file) setup_.blind->keep_back();
  feed_ =
      std::make_unique<TransformFeed>(*setup_.transform, setup_.transform_order, data_.tokens, plan_,
                                      model_.config.vocabulary, setup_.config.batch_documents, setup_.blind);
  proposed_.resize(static_cast<std::size_t>(setup_.transform->biases()));
  plain_book_.assign(data_.tokens.size(), 0.0F);
}

// In the order of scoring: document by document within a chunk. The places of a batch are its slots.
void TttRun::propose(const Turn& turn) {
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
  int number = 0;
  for (const std::vector<std::int32_t>& tokens : proposed_numbers())
    turn.program.set_proposal(number++, tokens);
}

std::vector<std::vector<std::int32_t>> TttRun::proposed_numbers() const {
  std::vector<std::vector<std::int32_t>> tokens(feed_ ? proposed_.size() : 0);
  for (std::size_t number = 0; number < tokens.size(); ++number) {
    for (const auto& proposal : proposals_)
      tokens[number].push_back(number < proposal.size() ? proposal[number].token : -1);
  }
  return tokens;
}

// Keeps the losses as the model gives them in plain_losses_.
void TttRun::apply_proposals(const WindowProgram& program, std::span<float> losses) {
  if (!feed_) return;
  plain_losses_.assign(losses.begin(), losses.end());
  for (std::size_t number = 0; number < proposed_.size(); ++number) {
    proposed_[number].resize(losses.size());
    program.download_proposed_losses(static_cast<int>(number), proposed_[number]);
  }
  double of_one[MLG_TRANSFORM_BIASES];
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const std::size_t count = proposals_[i].size();
    if (count == 0) continue;
    for (std::size_t number = 0; number < count; ++number)
      of_one[number] = static_cast<double>(proposed_[number][i]);
    losses[i] = static_cast<float>(transformed_loss(static_cast<double>(losses[i]), targets_[i],
                                                    proposals_[i], std::span(of_one).first(count)));
  }
}

// What an interrupted run had told the transform of a batch that is done, in the same order.
void TttRun::tell_again(std::int64_t queue) {
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
