// What a score transform makes of losses, and who tells it which token when.
#pragma once

#include <mulligan/transform.h>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "framework/config/adaptation.h"
#include "framework/plugin/transform.h"
#include "framework/ttt/document_plan.h"

namespace mulligan {

// The loss of `target` in nats when the biases of `proposal` are added to the logits and the softmax is made
// anew: loss - [bias of the target] + log(sum over all tokens of p e^bias). `loss` is the target's without
// them, proposed_losses[i] that of proposal[i].token, from the same logits.
double transformed_loss(double loss, std::int32_t target, std::span<const mlg_bias> proposal,
                        std::span<const double> proposed_losses);

// Asks a transform for its proposals and then tells it the tokens, in one of the orders of [ttt.transform].
class TransformFeed {
 public:
  // `places` documents of a batch at most. In file order it makes all proposals here. The arguments must
  // outlive this object. Throws what the plugin's calls throw.
  TransformFeed(const Transform& transform, TransformOrder order, std::span<const std::uint16_t> tokens,
                const DocumentPlan& plan, std::int64_t vocabulary, std::int64_t places);

  // Batches of this lane follow; it knows what earlier batches of it have told.
  void enter_lane(std::int64_t lane);
  // For the targets of a chunk, document by document: each is proposed for, handed over, and then told. The first
  // argument is the place of the document in the batch. The chunks of a batch come in order.
  using Proposed = std::function<void(std::size_t, std::int64_t target, std::span<const mlg_bias>)>;
  void propose(const PlannedBatch& batch, std::int64_t chunk, const Proposed& proposed);

 private:
  std::int32_t token(std::int64_t position) const { return tokens_[static_cast<std::size_t>(position)]; }
  std::unique_ptr<Transform::Stream> open(std::int64_t tokens, std::int64_t places) const {
    return transform_.open({vocabulary_, tokens, places});
  }

  const Transform& transform_;
  TransformOrder order_;
  std::span<const std::uint16_t> tokens_;
  const DocumentPlan& plan_;
  std::int64_t vocabulary_, places_;
  std::map<std::int64_t, std::unique_ptr<Transform::Stream>> lanes_;  // queue order
  Transform::Stream* lane_ = nullptr;                                 // of them
  std::vector<std::unique_ptr<Transform::Stream>> documents_;         // document order, by place
  std::vector<std::int64_t> file_targets_;                            // file order, ascending
  std::vector<mlg_bias> file_biases_;                                 // of these
};

}  // namespace mulligan
