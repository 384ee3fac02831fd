#include "kernels/head_gate_xsa/op.h"

#include "framework/graph/row_rules.h"

namespace mulligan::ops {

const KernelRules head_gate_xsa_rules{
    {"head_gate_xsa_fwd", RowRule::row_wise, "iiio", "gated attn_out", "q-k norm, rotary, XSA, gate"},
    {"head_gate_xsa_bwd", RowRule::mixing, "", "", "q-k norm, rotary, XSA, gate"}};

Value head_gate_xsa(Tape& tape, Value o, Value v, Value gate, double gate_scale) {
  return tape.call("head_gate_xsa", {o, v, gate}, "gated attention", {{"gate_scale", gate_scale}},
                   {{o, "do"}, {v, "dv"}, {gate, "dgate"}});
}

}  // namespace mulligan::ops
