#include "kernels/softcap/op.h"

#include "framework/graph/row_rules.h"

namespace mulligan::ops {

const KernelRules softcap_rules{{"softcap_fwd", RowRule::elementwise, "io", "capped logits", "cross entropy"},
                                {"softcap_bwd", RowRule::elementwise, "iia", "", "cross entropy"}};

Value softcap(Tape& tape, Value z, double cap) {
  Graph& graph = tape.graph();
  const Value y = graph.scratch(graph.type(z), "capped logits");
  tape.call("softcap", {z}, {y}, {{"cap", cap}}, {{z, "dz"}});
  return y;
}

}  // namespace mulligan::ops
