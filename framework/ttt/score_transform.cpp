#include "framework/ttt/score_transform.h"

#include <algorithm>
#include <cmath>

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
                             std::int64_t vocabulary, std::int64_t places, TransformWitness* witness)
    : transform_(transform),
      order_(order),
      tokens_(tokens),
      plan_(plan),
      vocabulary_(vocabulary),
      places_(places),
      witness_(witness),
      documents_(order == TransformOrder::document ? static_cast<std::size_t>(places) : 0) {
  if (order == TransformOrder::file) read_file();
}

std::unique_ptr<Transform::Stream> TransformFeed::open(std::int64_t number, std::int64_t tokens,
                                                       std::int64_t places) const {
  const mlg_transform_text text{vocabulary_, tokens, places};
  if (witness_) witness_->opened(number, text);
  return transform_.open(text);
}

// The whole stream as one text without documents, its first token included in nothing: what the record does.
void TransformFeed::read_file() {
  const auto stream = open(0, static_cast<std::int64_t>(tokens_.size()) - 1, 1);
  for (std::int64_t target = 1; target < static_cast<std::int64_t>(tokens_.size()); ++target) {
    const std::span<const mlg_bias> proposal = stream->propose(0);
    for (const mlg_bias& bias : proposal) file_.push_back({target, bias});
    if (witness_) witness_->told(0, 0, token(target), proposal);
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
  if (!stream) stream = open(lane, static_cast<std::int64_t>(tokens_.size()) - 1, places_);
  lane_ = {stream.get(), 0, lane};
}

void TransformFeed::begin(std::int64_t place, int number) {
  if (order_ == TransformOrder::file) return;
  const Document& document = plan_.document(number);
  if (order_ == TransformOrder::document)
    documents_[static_cast<std::size_t>(place)] = open(place, plan_.targets(number), 1);
  const Reader reader = stream_of(place);
  if (witness_) witness_->began(reader.number, reader.place, token(document.start));
  reader.stream->begin(reader.place, token(document.start));
}

TransformFeed::Reader TransformFeed::stream_of(std::int64_t place) const {
  if (order_ == TransformOrder::document)
    return {documents_[static_cast<std::size_t>(place)].get(), 0, place};
  return {lane_.stream, place, lane_.number};
}

}  // namespace mulligan
