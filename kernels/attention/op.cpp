#include "kernels/attention/op.h"

#include <cmath>
#include <utility>
#include <vector>

#include "framework/graph/row_rules.h"

namespace mulligan::ops {
namespace {

const KernelRules attention_rules{{"attention_fwd", RowRule::causal, "", "attn_out"},
                                  {"attention_stable_fwd", RowRule::causal, "", "attn_out"},
                                  {"attention_bwd", RowRule::mixing, ""},
                                  {"attention_bidirectional_fwd", RowRule::mixing, "", "attn_out"},
                                  {"attention_bidirectional_bwd", RowRule::mixing, ""}};

// The calls for one of the forward kernels, whose arguments are the same, as are those of the backward kernels.
Value record(Tape& tape, const char* kernel, const char* backward, double softmax_scale,
             std::vector<Attribute> rule, Value q, Value k, Value v, Value cu_seqlens) {
  Graph& graph = tape.graph();
  const TensorType& type = graph.type(q);
  if (softmax_scale == 0) softmax_scale = 1.0 / std::sqrt(static_cast<double>(type.dims[2]));
  const Attribute scale{"softmax_scale", softmax_scale};
  const Value o = graph.scratch(type, "attention");
  const Value lse = graph.scratch(TensorType(MLG_F32, {type.dims[0], type.dims[1]}), "attention logsumexp");
  rule.insert(rule.begin(), scale);
  graph.call(kernel, {q, k, v, cu_seqlens, o, lse}, std::move(rule));
  tape.record({o}, {q, k, v}, [=](Backward& b) {
    // The kernel computes all three together. A gradient that is not needed goes to scratch memory.
    const auto gradient = [&](Value input) {
      Backward::Target target = b.into(input);
      if (!target.value) target.value = b.graph().scratch(b.graph().type(input), "unused gradient");
      return target;
    };
    const auto dq = gradient(q);
    const auto dk = gradient(k);
    const auto dv = gradient(v);
    b.graph().call(backward, {q, k, v, cu_seqlens, o, lse, b.of(o), dq.value, dk.value, dv.value},
                   {scale,
                    {"accumulate_dq", dq.accumulate},
                    {"accumulate_dk", dk.accumulate},
                    {"accumulate_dv", dv.accumulate}});
  });
  return o;
}

}  // namespace

Value attention(Tape& tape, Value q, Value k, Value v, Value cu_seqlens, double scale) {
  return record(tape, "attention_fwd", "attention_bwd", scale, {}, q, k, v, cu_seqlens);
}

Value bidirectional_attention(Tape& tape, Value q, Value k, Value v, Value cu_seqlens, double scale) {
  return record(tape, "attention_bidirectional_fwd", "attention_bidirectional_bwd", scale, {}, q, k, v,
                cu_seqlens);
}

Value stable_attention(Tape& tape, Value q, Value k, Value v, Value cu_seqlens, const StableAttention& how) {
  return record(tape, "attention_stable_fwd", "attention_bwd", how.scale,
                {{"beta", how.beta},
                 {"tolerance", how.tolerance},
                 {"min_repeats", static_cast<double>(how.min_repeats)},
                 {"cap", how.cap},
                 {"round_normalizer", how.round_normalizer ? 1.0 : 0.0},
                 {"round_sums", how.round_sums ? 1.0 : 0.0}},
                q, k, v, cu_seqlens);
}

}  // namespace mulligan::ops
