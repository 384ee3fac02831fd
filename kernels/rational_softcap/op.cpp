#include "kernels/rational_softcap/op.h"

#include "framework/graph/row_rules.h"

namespace mulligan::ops {

const KernelRules rational_softcap_rules{
    {"rational_softcap_fwd", RowRule::elementwise, "io", "capped logits", "cross entropy"},
    {"rational_softcap_bwd", RowRule::elementwise, "iia", "", "cross entropy"}};

Value rational_softcap(Tape& tape, Value z, double cap) {
  Graph& graph = tape.graph();
  const Value y = graph.scratch(graph.type(z).as(MLG_F32), "capped logits");
  tape.call("rational_softcap", {z}, {y}, {{"cap", cap}}, {{z, "dz"}});
  return y;
}

}  // namespace mulligan::ops
