#include "framework/model/qkv_projection.h"

#include <algorithm>
#include <vector>

#include "kernels/concat_rows/op.h"
#include "kernels/matmul/op.h"

namespace mulligan {
namespace {

// Packed rows are a multiple of so many elements, 16 bytes of bf16, so that all of them begin aligned.
constexpr std::int64_t row_multiple = 8;

constexpr TapKind single_taps[] = {TapKind::q, TapKind::k, TapKind::v};

}  // namespace

ops::AttentionInputs QkvProjection::operator()(Value n, std::int64_t layer, std::int64_t slot) {
  return can_pack(n, layer, slot) ? packed_matmul(n, layer, slot) : single_matmuls(n, layer, slot);
}

bool QkvProjection::can_pack(Value n, std::int64_t layer, std::int64_t slot) const {
  const auto changed = [&](TapKind kind) {
    return options_.taps->changes(tape_.graph(), {kind, slot, layer, n, n, Value{}}, heads(n, kind));
  };
  if (options_.taps && std::ranges::any_of(single_taps, changed)) return false;
  return tape_.fused().have(
      {"concat_rows_fwd", "concat_rows_bwd", "qkv_split_norm_rope_fwd", "qkv_split_norm_rope_bwd"});
}

TensorType QkvProjection::heads(Value n, TapKind kind) const {
  const TensorType& input = tape_.graph().type(n);
  return TensorType(input.dtype, {input.dims[0], kind == TapKind::q ? m_.heads : m_.kv_heads, m_.head_width});
}

ops::AttentionInputs QkvProjection::single_matmuls(Value n, std::int64_t layer, std::int64_t slot) {
  Graph& graph = tape_.graph();
  const auto project = [&](TapKind kind, const char* name, std::int64_t index) {
    const Value out = ops::linear(tape_, n, graph.slice(p_(name), index), heads(n, kind));
    return tap(kind, n, out, layer, slot);
  };
  const Value q = project(TapKind::q, "qo_bank", layer);
  const Value k = project(TapKind::k, "kv_bank", layer);
  ops::AttentionInputs out;
  out.v = out.v_again = project(TapKind::v, "kv_bank", m_.layers + layer);
  const auto rotated = [&](Value x, Value head_gain) {
    return ops::qk_norm_rope(tape_, x, in_.rope_cos, in_.rope_sin, head_gain, rotation());
  };
  out.q = rotated(q, gain(layer));
  out.k = rotated(k, Value{});
  if (gate_) out.gate = gate(n, layer);
  return out;
}

ops::AttentionInputs QkvProjection::packed_matmul(Value n, std::int64_t layer, std::int64_t slot) {
  for (const TapKind kind : single_taps) tap(kind, n, Value{}, layer, slot);
  const Value weight = packed_weight(layer);
  const TensorType& input = tape_.graph().type(n);
  const Value packed = ops::linear(
      tape_, n, weight, TensorType(input.dtype, {input.dims[0], tape_.graph().type(weight).dims[0]}));
  ops::AttentionInputs out =
      ops::qkv_split_norm_rope(tape_, packed, in_.rope_cos, in_.rope_sin, gain(layer),
                               {m_.heads, m_.kv_heads, m_.head_width, packs_gate(layer)}, rotation());
  if (gate_ && !packs_gate(layer)) out.gate = gate(n, layer);
  return out;
}

bool QkvProjection::packs_gate(std::int64_t layer) const {
  if (!gate_) return false;
  const Graph& graph = tape_.graph();
  return graph.type(gate_weight(layer)).dtype == graph.type(p_("qo_bank")).dtype;
}

Value QkvProjection::gate(Value n, std::int64_t layer) {
  const TensorType& input = tape_.graph().type(n);
  return ops::linear(tape_, n, wide_gate_weight(layer), TensorType(input.dtype, {input.dims[0], m_.heads}));
}

Value QkvProjection::packed_weight(std::int64_t layer) {
  const auto [known, is_new] = packed_weights_.try_emplace(layer);
  if (!is_new) return known->second;
  Graph& graph = tape_.graph();
  std::vector<Value> parts = {graph.slice(p_("qo_bank"), layer), graph.slice(p_("kv_bank"), layer),
                              graph.slice(p_("kv_bank"), m_.layers + layer)};
  if (packs_gate(layer)) parts.push_back(gate_weight(layer));
  const ops::PackedHeads heads{m_.heads, m_.kv_heads, m_.head_width, packs_gate(layer)};
  const std::int64_t rows = (heads.width() + row_multiple - 1) / row_multiple * row_multiple;
  return known->second = ops::concat_rows(tape_, parts, rows, m_.width);
}

Value QkvProjection::wide_gate_weight(std::int64_t layer) {
  if (gate_->window == m_.width) return gate_weight(layer);
  const auto [known, is_new] = wide_gate_weights_.try_emplace(layer);
  if (is_new) known->second = ops::concat_rows(tape_, std::vector{gate_weight(layer)}, m_.heads, m_.width);
  return known->second;
}

Value QkvProjection::tap(TapKind kind, Value n, Value output, std::int64_t layer, std::int64_t slot) {
  return options_.taps ? options_.taps->at(tape_, {kind, slot, layer, n, n, output}) : output;
}

ops::QkNormRope QkvProjection::rotation() const {
  return {m_.qk_norm, norm_epsilon(m_), m_.rope.dims, options_.row_length};
}

}  // namespace mulligan
