// How long one kernel call is expected to take on a card: arithmetic on its shapes and on rates of card.h,
// nothing measured.
#pragma once

#include <cstdint>
#include <string>

#include "framework/graph/call_access.h"
#include "framework/graph/graph.h"
#include "tools/cost/card.h"
#include "tools/cost/prediction.h"
#include "tools/cost/step_rehearsal.h"

namespace mulligan {

// Matrix products by the extents of [m, k] x [k, n], whatever their order: how large the smallest is, then
// the one in the middle.
enum class ProductClass {
  wide,    // smallest >= 128, middle >= 4096: the head of a language model
  layer,   // smallest >= 128
  narrow,  // smallest < 128, such as gates: tiles of 128 are computed whole, so the rate is that share
           // of a layer's
};
ProductClass product_class(const Graph& graph, const Call& call);

struct CallPrediction {
  double flops = 0;  // of products and attention (cost.h)
  double bytes_read = 0, bytes_written = 0;
  std::int64_t launches = 0;  // with the kernels that a library launches
  double seconds = 0;
};

// `work`: what the cuda backend launches for it. A call of a library counts as one kernel, cuDNN's backward
// pass of attention as three (the products of o and do, the gradients, the sums of them).
//
// seconds = launches * launch_seconds + max(flops / rate, bytes / sustained_bytes_per_second, and of the cross entropy
// instructions / their rate). Where a
// library computes a backward pass of attention, what it does before and after comes on top: it clears its
// f32 sum of dq, reads o and do, and turns f32 sums of dq, and of dk and dv of each query head, into the
// gradients. A product with activation that the library's product and a launch compute costs what these two
// cost. Bytes are those of the arguments, as the signature says that they are read and written, less what a
// kernel's code leaves unread. `segment_tokens`: as in graph_cost; the token-weighted mean of the lengths
// gives the pairs of unequal segments.
CallPrediction predict_call(const Graph& graph, const Call& call, const CallAccess& access,
                            const mlg_work& work, std::int64_t segment_tokens, const Card& card);

// What a table sums over: "layer products", "attention, backward", ... `in_micro_step` is false for clip,
// update and averages.
std::string cost_category(const Graph& graph, const Call& call, bool in_micro_step);

// What the events of a rehearsed step cost on a card.
class EventCost {
 public:
  // `rehearsal` must outlive it, and its last step be that of the events.
  EventCost(const StepRehearsal& rehearsal, std::int64_t segment_tokens, const Card& card)
      : rehearsal_(rehearsal), segment_tokens_(segment_tokens), card_(card) {}

  // Of one event that is not a transfer; shapes are left out.
  PredictedRow row(const StepEvent& event) const;

 private:
  const StepRehearsal& rehearsal_;
  std::int64_t segment_tokens_;
  Card card_;
};

}  // namespace mulligan
