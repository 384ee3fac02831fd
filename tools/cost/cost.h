// The cards that costs are estimated for, and what a graph costs: floating-point operations of its matmuls and attention, bytes of
// its arguments.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/graph/graph.h"

namespace mulligan {

struct Card {
  std::string name;         // "h100"
  std::string description;  // "NVIDIA H100 SXM"

  // Peak rates, dense (no sparsity), from its maker's data sheet: the limits of a roofline.
  double bf16_flops_per_second = 0;
  double fp32_flops_per_second = 0;
  double bytes_per_second = 0;
  double memory_bytes = 0;
  double cache_bytes = 0;  // the second-level cache, shared by all multiprocessors

  // What a step is expected to reach; cost.cpp says where each comes from.
  double sustained_bytes_per_second = 0;          // kernels that read and write memory once
  double wide_product_flops_per_second = 0;       // bf16, ProductClass::wide
  double layer_product_flops_per_second = 0;      // bf16, ProductClass::layer
  double fp32_product_flops_per_second = 0;       // any shape
  double attention_forward_flops_per_second = 0;  // bf16, of a library
  double attention_backward_flops_per_second = 0;
  double own_attention_flops_per_second = 0;  // of the backend's own kernel, which has no matrix units
  double launch_seconds = 0;                  // what a kernel of a captured graph costs besides its work
  double upload_bytes_per_second = 0;         // from the host's page-locked memory
  double upload_seconds = 0;                  // what an upload costs besides its bytes
};

// The first is the default.
const std::vector<Card>& known_cards();
// Throws config_error listing the known cards.
const Card& find_card(const std::string& name);
// "h100, h200, ...", for help texts.
std::string card_names();

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
