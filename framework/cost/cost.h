// What a graph costs: floating-point operations of its matrix products and attention, bytes of its arguments.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/graph/graph.h"

namespace mulligan {

// Peak rates of a card: dense (no sparsity), from its maker's data sheet.
struct Card {
  std::string name;         // "h100"
  std::string description;  // "NVIDIA H100 SXM"
  double bf16_flops_per_second = 0;
  double fp32_flops_per_second = 0;
  double bytes_per_second = 0;
};
const std::vector<Card>& known_cards();
// Throws config_error listing the known cards.
const Card& find_card(const std::string& name);

struct Cost {
  double matmul_flops = 0;
  double attention_flops = 0;
  double bytes = 0;    // every argument of every call read or written once
  double seconds = 0;  // roofline: the sum over calls of max(flops / peak, bytes / bandwidth); a lower bound
  Cost& operator+=(const Cost& other);
  Cost operator*(double factor) const;
};

// Of one call, as graph_cost counts it.
Cost call_cost(const Graph& graph, const Call& call, std::int64_t segment_tokens, const Card& card);

// A matrix product [m, k] x [k, n] counts 2mnk. Causal attention counts 4h operations (forward) or 10h
// (backward, which recomputes the scores) per head and pair of positions, with all segments `segment_tokens`
// long, the longest that may occur. Element-wise work counts as bytes only.
Cost graph_cost(const Graph& graph, std::int64_t segment_tokens, const Card& card);

}  // namespace mulligan
