// The time that one kernel call is predicted to take on a card, by its shapes and the rates of cost.h.
#pragma once

#include <cstdint>
#include <string>

#include "framework/graph/call_access.h"
#include "framework/graph/graph.h"
#include "tools/cost/cost.h"
#include "tools/cost/cost_text.h"
#include "tools/cost/step_rehearsal.h"

namespace mulligan {

// Matmuls by the smallest and the middle extent of [m, k] x [k, n], in any order.
enum class ProductClass {
  wide,   // smallest >= 128, middle >= 4096: the head of a language model
  layer,  // smallest >= 128
  narrow,  // smallest < 128, such as gates: tiles of 128 are computed whole, so the rate is that share of a layer's
};
ProductClass product_class(const Graph& graph, const Call& call);

// seconds = launches * launch_seconds + max(flops / rate, bytes / sustained_bytes_per_second), and for the cross entropy at
// least its instructions by their rate. `work` is what the cuda backend launches for the call. A library call counts as one
// kernel, cuDNN's backward attention as three; its f32 sums of gradients are added. A matmul with activation costs the
// library's matmul and the launch after it. Bytes are those of the arguments that the signature declares as read and
// written, except what a kernel's code does not read. `segment_tokens` is as in graph_cost.
CostRow predict_call(const Graph& graph, const Call& call, const CallAccess& access, const mlg_work& work,
                     std::int64_t segment_tokens, const Card& card);

// The cost of an event of the rehearsal's last step; shapes are left out.
CostRow event_cost(const StepRehearsal& rehearsal, const StepEvent& event, std::int64_t segment_tokens,
                   const Card& card);

}  // namespace mulligan
