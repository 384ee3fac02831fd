// What a graph costs: floating-point operations of its matmuls and attention, bytes of its arguments.
#pragma once

#include <cstdint>

#include "framework/graph/graph.h"
#include "tools/cost/card.h"

namespace mulligan {

struct Cost {
  double matmul_flops = 0;
  double attention_flops = 0;
  double bytes = 0;    // every argument of every call read or written once
  double seconds = 0;  // roofline: the sum over calls of max(flops / peak, bytes / bandwidth); a lower bound
  Cost& operator+=(const Cost& other);
  Cost operator*(double factor) const;
};

// Whether a call multiplies matrices.
bool is_product(const Call& call);
// Whether a call is one of the attention kernels, forward or backward.
bool is_attention(const Call& call);

// Of one call, as graph_cost counts it.
Cost call_cost(const Graph& graph, const Call& call, std::int64_t segment_tokens, const Card& card);

// A matmul [m, k] x [k, n] counts 2mnk, a symmetric one [n, k] x [k, n] its lower triangle, n(n+1)k.
// Causal attention counts 4h operations (forward) or 10h (backward, which recomputes the scores) per head and
// pair of positions, with all segments `segment_tokens` long, the longest that may occur. Element-wise work
// counts as bytes only.
Cost graph_cost(const Graph& graph, std::int64_t segment_tokens, const Card& card);

}  // namespace mulligan
