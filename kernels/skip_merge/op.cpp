#include "kernels/skip_merge/op.h"

#include "framework/graph/row_rules.h"

namespace mulligan::ops {

const KernelRules skip_merge_rules{{"skip_merge_fwd", RowRule::row_wise, "iippo", "skip connection"},
                                   {"skip_merge_bwd", RowRule::mixing, ""}};

Value skip_merge(Tape& tape, Value x, Value s, Value weight, Value gate) {
  Graph& graph = tape.graph();
  const Value y = graph.scratch(graph.type(x), "skip merge");
  graph.call("skip_merge_fwd", {x, s, weight, gate, y});
  tape.record({y}, {x, s, weight, gate}, [=](Backward& b) {
    const auto dx = b.into(x);
    const auto ds = b.into(s);
    const Value dgate = gate ? b.into(gate).value : Value{};
    b.graph().call("skip_merge_bwd",
                   {x, s, weight, gate, b.of(y), dx.value, ds.value, b.into(weight).value, dgate},
                   {{"accumulate_dx", dx.accumulate}, {"accumulate_ds", ds.accumulate}});
  });
  return y;
}

}  // namespace mulligan::ops
