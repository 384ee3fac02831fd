#include "kernels/softcap/op.h"

#include "framework/graph/row_rules.h"

namespace mulligan::ops {

const KernelRules softcap_rules{{"softcap_fwd", RowRule::elementwise, "io", "capped logits", "cross entropy"},
                                {"softcap_bwd", RowRule::elementwise, "iia", "", "cross entropy"}};

Value softcap(Tape& tape, Value z, double cap) {
  Graph& graph = tape.graph();
  const Value y = graph.scratch(graph.type(z), "capped logits");
  graph.call("softcap_fwd", {z, y}, {{"cap", cap}});
  tape.record({y}, {z}, [=](Backward& b) {
    const auto dz = b.into(z);
    b.graph().call("softcap_bwd", {z, b.of(y), dz.value}, {{"cap", cap}, {"accumulate_dz", dz.accumulate}});
  });
  return y;
}

}  // namespace mulligan::ops
