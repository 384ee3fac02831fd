#include "kernels/qk_norm_rope/op_qkv.h"

#include <stdexcept>

#include "framework/graph/row_rules.h"

namespace mulligan::ops {

const KernelRules qkv_split_norm_rope_rules{
    {"qkv_split_norm_rope_fwd", RowRule::row_wise, "ipppoooo", "q and k (post-rope)",
     "q-k norm, rotary, XSA, gate", true},
    {"qkv_split_norm_rope_bwd", RowRule::mixing, "", "", "q-k norm, rotary, XSA, gate", true}};

AttentionInputs qkv_split_norm_rope(Tape& tape, Value packed, Value cos, Value sin, Value gain,
                                    const PackedHeads& heads, const QkNormRope& options) {
  Graph& graph = tape.graph();
  const DType dtype = graph.type(packed).dtype;
  const std::int64_t tokens = graph.type(packed).dims[0];
  const TensorType queries(dtype, {tokens, heads.heads, heads.head_width}),
      keys(dtype, {tokens, heads.kv_heads, heads.head_width});
  AttentionInputs out;
  out.q = graph.scratch(queries, "rotated queries");
  out.k = graph.scratch(keys, "rotated keys");
  out.v = graph.scratch(keys, "values");
  out.v_again = graph.reshape(out.v, keys);
  if (heads.gated) out.gate = graph.scratch(TensorType(dtype, {tokens, heads.heads}), "gates");
  const std::vector<Attribute> attributes = qk_norm_rope_attributes(options);
  graph.call("qkv_split_norm_rope_fwd", {packed, cos, sin, gain, out.q, out.k, out.v, out.gate}, attributes);
  tape.record({out.q, out.k, out.v, out.v_again, out.gate}, {packed, gain}, [=](Backward& b) {
    const Value dq = b.of(out.q), dk = b.of(out.k), dv = b.of(out.v);
    if (!dq || !dk || !dv) throw std::logic_error("qkv_split_norm_rope: nothing depends on q, k or v");
    // The kernel computes it together with dgain. If it is not needed, it goes to scratch memory.
    Backward::Target dpacked = b.into(packed);
    if (!dpacked.value) dpacked.value = b.graph().scratch(b.graph().type(packed), "unused gradient");
    std::vector<Attribute> backward_attributes = attributes;
    backward_attributes.push_back({"accumulate_dpacked", dpacked.accumulate});
    b.graph().call("qkv_split_norm_rope_bwd",
                   {packed, cos, sin, gain, dq, dk, dv, b.of(out.v_again), b.of(out.gate), dpacked.value,
                    b.into(gain).value},
                   backward_attributes);
  });
  return out;
}

}  // namespace mulligan::ops
