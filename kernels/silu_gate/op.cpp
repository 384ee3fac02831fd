#include "kernels/silu_gate/op.h"

#include "framework/graph/row_rules.h"

namespace mulligan::ops {

const KernelRules silu_gate_rules{{"silu_gate_fwd", RowRule::elementwise, "iio", "act"},
                                  {"silu_gate_bwd", RowRule::elementwise, "iiiaa"}};

Value silu_gate(Tape& tape, Value g, Value u) {
  Graph& graph = tape.graph();
  const Value y = graph.scratch(graph.type(g), "gated activation");
  graph.call("silu_gate_fwd", {g, u, y});
  tape.record({y}, {g, u}, [=](Backward& b) {
    const auto dg = b.into(g);
    const auto du = b.into(u);
    b.graph().call("silu_gate_bwd", {g, u, b.of(y), dg.value, du.value},
                   {{"accumulate_dg", dg.accumulate}, {"accumulate_du", du.accumulate}});
  });
  return y;
}

}  // namespace mulligan::ops
