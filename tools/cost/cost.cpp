#include "tools/cost/cost.h"

#include <algorithm>
#include <string_view>

namespace mulligan {
namespace {

double attribute(const Call& call, std::string_view name) {
  const auto found = std::ranges::find(call.attributes, name, &Attribute::name);
  return found == call.attributes.end() ? 0.0 : found->value;
}

// a, b, c (or what is added, of the same shape) of rank 2, or of rank 3 with the batch first. Of a symmetric
// matmul the lower triangle.
double matmul_flops(const Graph& graph, const Call& call) {
  const TensorType& a = graph.type(call.arguments[0]);
  const TensorType& c = graph.type(call.arguments[2]);
  const auto inner = static_cast<double>(a.dims[a.rank - (attribute(call, "transpose_a") != 0 ? 2 : 1)]);
  const double whole = 2.0 * static_cast<double>(c.elements()) * inner;
  if (call.kernel != "symmetric_matmul") return whole;
  const auto rows = static_cast<double>(c.dims[c.rank - 1]);
  return whole * (rows + 1) / (2 * rows);
}

// linear_leaky_relu_squared: [T, k] by a weight, to what its last argument holds.
double linear_flops(const Graph& graph, const Call& call) {
  const TensorType& input = graph.type(call.arguments.front());
  return 2.0 * static_cast<double>(graph.type(call.arguments.back()).elements()) *
         static_cast<double>(input.dims[1]);
}

// q [T, H, h] is the first argument of all attention kernels.
double attention_flops(const Graph& graph, const Call& call, std::int64_t segment_tokens, double per_pair) {
  const TensorType& q = graph.type(call.arguments[0]);
  const auto segment = static_cast<double>(std::min(segment_tokens, q.dims[0]));
  const bool causal = !call.kernel.starts_with("attention_bidirectional_");
  const double pairs = static_cast<double>(q.dims[0]) * (causal ? (segment + 1) / 2 : segment);
  return per_pair * static_cast<double>(q.dims[2]) * static_cast<double>(q.dims[1]) * pairs;
}

}  // namespace

bool is_product(const Call& call) {
  return call.kernel == "matmul" || call.kernel == "symmetric_matmul" || call.kernel == "matmul_add" ||
         call.kernel == "widened_matmul";
}

bool is_attention(const Call& call) {
  return call.kernel.starts_with("attention_") &&
         (call.kernel.ends_with("_fwd") || call.kernel.ends_with("_bwd"));
}

Cost& Cost::operator+=(const Cost& other) {
  matmul_flops += other.matmul_flops;
  attention_flops += other.attention_flops;
  bytes += other.bytes;
  seconds += other.seconds;
  return *this;
}

Cost Cost::operator*(double factor) const {
  return {matmul_flops * factor, attention_flops * factor, bytes * factor, seconds * factor};
}

Cost call_cost(const Graph& graph, const Call& call, std::int64_t segment_tokens, const Card& card) {
  Cost cost;
  for (const Value argument : call.arguments) {
    if (argument) cost.bytes += static_cast<double>(graph.type(argument).bytes());
  }
  if (is_product(call)) cost.matmul_flops = matmul_flops(graph, call);
  if (call.kernel.starts_with("linear_leaky_relu_squared_")) cost.matmul_flops = linear_flops(graph, call);
  if (is_attention(call)) {
    const bool backward = call.kernel.ends_with("_bwd");
    cost.attention_flops = attention_flops(graph, call, segment_tokens, backward ? 10 : 4);
  }
  const double flops = cost.matmul_flops + cost.attention_flops;
  const auto first = std::ranges::find_if(call.arguments, [](Value argument) { return bool(argument); });
  const bool bf16 = graph.type(*first).dtype != MLG_F32;  // or f16, which is as fast
  const double rate = bf16 ? card.bf16_flops_per_second : card.fp32_flops_per_second;
  cost.seconds = std::max(flops / rate, cost.bytes / card.bytes_per_second);
  return cost;
}

Cost graph_cost(const Graph& graph, std::int64_t segment_tokens, const Card& card) {
  Cost total;
  for (const Call& call : graph.calls()) total += call_cost(graph, call, segment_tokens, card);
  return total;
}

}  // namespace mulligan
