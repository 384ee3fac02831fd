#include "framework/graph/ops/softcap.h"

#include "framework/graph/row_rules.h"

namespace mulligan::ops {
namespace {

const KernelRules rules{{"softcap_fwd", RowRule::elementwise, "io"},
                        {"softcap_bwd", RowRule::elementwise, "iia"}};

}  // namespace

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
