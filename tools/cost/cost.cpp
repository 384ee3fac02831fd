#include "tools/cost/cost.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <ranges>

#include "framework/core/error.h"

namespace mulligan {
namespace {

// a, b, c (or what is added, of the same shape) of rank 2, or of rank 3 with the batch first. Of a symmetric
// matmul the lower triangle.
double matmul_flops(const Graph& graph, const Call& call) {
  const TensorType& a = graph.type(call.arguments[0]);
  const TensorType& c = graph.type(call.arguments[2]);
  const auto inner = static_cast<double>(a.dims[a.rank - (call.attribute("transpose_a") != 0 ? 2 : 1)]);
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

namespace {

// Where the figures come from. None of them was measured by this project.
//
//   peaks      NVIDIA's data sheets: H100 SXM5, H200 SXM, A100 80GB SXM, B200 (as in a DGX B200), RTX 4090 (matmuls
//              summed in fp32). Memory: the sheet's gigabytes. Caches: NVIDIA's descriptions of the architectures.
//   sustained  A reading of the cuda backend's kernels at the record's shape took 2.75 TB/s on an H100, 82 %
//              of its peak, for kernels that stream; the same share is taken of the other cards' peaks.
//   matmuls    From the same reading for cuBLASLt on an H100 at 98,304 tokens and width 512: 545 TFLOP/s for
//              the layers' matmuls, 618 for the head's of 8,192 columns (rounded to 620). An H200 has the
//              same units and power. An A100: the same shares of its peak (55 and 63 %); its smaller matrix
//              units are easier to fill, so it may do better. fp32 matmuls run on the ordinary units: 80 %
//              of their peak.
//   attention  cuDNN, heads of 64, packed documents, on an H100: 295 TFLOP/s forward, in the middle of what a
//              second reading found likely for these lengths, and 330 backward (of 4 and 10 operations), what
//              the first reading's milliseconds come to at its token-weighted length of 1,250. An A100: the
//              same shares. Our own kernel has no matrix units: a quarter of the fp32
//              peak, a guess.
//   launches   A kernel in a captured graph begins about 1.3 us after the one before it ended, and takes
//              about as long to fill and drain the card: an assumption, the same for all cards.
//   uploads    25 GB/s (PCIe 4.0 x16) and 55 (5.0) at best, 10 us each: an assumption.
//   others     B200 and RTX 4090 have the H100's shares of their peaks, without a reading of mulligan's kernels for them.
std::vector<Card> make_cards() {
  std::vector<Card> cards = {{"h100", "NVIDIA H100 SXM"},
                             {"h200", "NVIDIA H200"},
                             {"a100", "NVIDIA A100 80GB SXM"},
                             {"b200", "NVIDIA B200"},
                             {"rtx4090", "NVIDIA GeForce RTX 4090"}};
  // One row for each figure, one column for each card.
  struct Row {
    double Card::*figure;
    std::array<double, 5> values;
  };
  constexpr Row rows[] = {
      {&Card::bf16_flops_per_second, {989e12, 989e12, 312e12, 2250e12, 165.2e12}},
      {&Card::fp32_flops_per_second, {67e12, 67e12, 19.5e12, 75e12, 82.6e12}},
      {&Card::bytes_per_second, {3.35e12, 4.8e12, 2.04e12, 8e12, 1.008e12}},
      {&Card::memory_bytes, {80e9, 141e9, 80e9, 180e9, 24e9}},
      {&Card::cache_bytes, {50 << 20, 50 << 20, 40 << 20, 126 << 20, 72 << 20}},
      {&Card::sustained_bytes_per_second, {2.75e12, 3.94e12, 1.67e12, 6.56e12, 0.827e12}},
      {&Card::wide_product_flops_per_second, {620e12, 620e12, 196e12, 1410e12, 103e12}},
      {&Card::layer_product_flops_per_second, {545e12, 545e12, 172e12, 1240e12, 91e12}},
      {&Card::fp32_product_flops_per_second, {53e12, 53e12, 15.6e12, 60e12, 66e12}},
      {&Card::attention_forward_flops_per_second, {295e12, 295e12, 93e12, 671e12, 49e12}},
      {&Card::attention_backward_flops_per_second, {330e12, 330e12, 104e12, 751e12, 55e12}},
      {&Card::own_attention_flops_per_second, {17e12, 17e12, 4.9e12, 19e12, 20.6e12}},
      {&Card::launch_seconds, {2.6e-6, 2.6e-6, 2.6e-6, 2.6e-6, 2.6e-6}},
      {&Card::upload_bytes_per_second, {55e9, 55e9, 25e9, 55e9, 25e9}},
      {&Card::upload_seconds, {10e-6, 10e-6, 10e-6, 10e-6, 10e-6}}};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < cards.size(); ++i) cards[i].*row.figure = row.values[i];
  }
  return cards;
}

}  // namespace

const std::vector<Card>& known_cards() {
  static const std::vector<Card> cards = make_cards();
  return cards;
}

std::string card_names() {
  return fmt::format("{}", fmt::join(known_cards() | std::views::transform(&Card::name), ", "));
}

const Card& find_card(const std::string& name) {
  const auto found = std::ranges::find(known_cards(), name, &Card::name);
  if (found != known_cards().end()) return *found;
  throw config_error("the card '{}' is not known; choose one of: {}.", name, card_names());
}

}  // namespace mulligan
