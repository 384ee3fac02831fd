// A lower bound of the time of a graph on a card: what would be left if everything between its matrix
// products were fused away.
//
// The bound divides the calls into groups. A matrix product and an attention pass, forward or backward, each
// begin a group; products that read the same tensor and do not wait for each other (q, k and v of a layer;
// the two gradients of one product) share one, as one kernel could read it once for all. Every other call
// belongs to the group that it waits for last, as if it were the end of that group's kernel, and costs no
// arithmetic. A tensor crosses memory where groups meet: it is written once by the group that makes it, if
// another one reads it or it outlasts the graph, and read once by each group that needs it. What is made and
// used within one group never reaches memory. A group takes max(FLOPs / fused rate, crossing bytes / fused
// bytes per second), the graph the sum of its groups; launches, memsets and uploads cost nothing. bf16
// attention has a rate of its own, that of the best published kernels, where softmax delays the matrix units.
//
// It never exceeds the sum of predict_call(): each byte and FLOP counted here is one of a call there, at no
// higher rate. It is not the best imaginable either: a product is never fused into the next one.
#pragma once

#include <cstdint>

#include "framework/graph/call_access.h"
#include "framework/graph/graph.h"
#include "tools/cost/card.h"

namespace mulligan {

struct FusionBound {
  std::int64_t groups = 0;
  double flops = 0;
  double bytes = 0;  // that cross memory
  double seconds = 0;
};

// `segment_tokens` as in predict_call().
FusionBound fusion_bound(const Graph& graph, const CallAccess& access, std::int64_t segment_tokens,
                         const Card& card);

}  // namespace mulligan
