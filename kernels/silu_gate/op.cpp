#include "kernels/silu_gate/op.h"

#include "framework/graph/row_rules.h"

namespace mulligan::ops {

const KernelRules silu_gate_rules{{"silu_gate_fwd", RowRule::elementwise, "iio", "act"},
                                  {"silu_gate_bwd", RowRule::elementwise, "iiiaa"}};

Value silu_gate(Tape& tape, Value g, Value u) {
  return tape.call("silu_gate", {g, u}, "gated activation", {}, {{g, "dg"}, {u, "du"}});
}

}  // namespace mulligan::ops
