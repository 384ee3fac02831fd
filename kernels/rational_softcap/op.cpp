#include "kernels/rational_softcap/op.h"

#include "framework/graph/row_rules.h"

namespace mulligan::ops {

const KernelRules rational_softcap_rules{
    {"rational_softcap_fwd", RowRule::elementwise, "io", "capped logits", "cross entropy"},
    {"rational_softcap_bwd", RowRule::elementwise, "iia", "", "cross entropy"}};

Value rational_softcap(Tape& tape, Value z, double cap) {
  Graph& graph = tape.graph();
  const Value y = graph.scratch(graph.type(z).as(MLG_F32), "capped logits");
  graph.call("rational_softcap_fwd", {z, y}, {{"cap", cap}});
  tape.record({y}, {z}, [=](Backward& b) {
    const auto dz = b.into(z);
    b.graph().call("rational_softcap_bwd", {z, b.of(y), dz.value},
                   {{"cap", cap}, {"accumulate_dz", dz.accumulate}});
  });
  return y;
}

}  // namespace mulligan::ops
