#include "kernels/head_gate_xsa/op.h"

#include "framework/graph/row_rules.h"

namespace mulligan::ops {

const KernelRules head_gate_xsa_rules{
    {"head_gate_xsa_fwd", RowRule::row_wise, "iiio", "gated attn_out", "q-k norm, rotary, XSA, gate"},
    {"head_gate_xsa_bwd", RowRule::mixing, "", "", "q-k norm, rotary, XSA, gate"}};

Value head_gate_xsa(Tape& tape, Value o, Value v, Value gate, double gate_scale) {
  Graph& graph = tape.graph();
  const Value y = graph.scratch(graph.type(o), "gated attention");
  graph.call("head_gate_xsa_fwd", {o, v, gate, y}, {{"gate_scale", gate_scale}});
  tape.record({y}, {o, v, gate}, [=](Backward& b) {
    const auto d_o = b.into(o);
    const auto dv = v ? b.into(v) : Backward::Target{};
    const auto dgate = gate ? b.into(gate) : Backward::Target{};
    b.graph().call("head_gate_xsa_bwd", {o, v, gate, b.of(y), d_o.value, dv.value, dgate.value},
                   {{"gate_scale", gate_scale},
                    {"accumulate_do", d_o.accumulate},
                    {"accumulate_dv", dv.accumulate},
                    {"accumulate_dgate", dgate.accumulate}});
  });
  return y;
}

}  // namespace mulligan::ops
