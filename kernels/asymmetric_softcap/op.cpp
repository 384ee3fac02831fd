#include "kernels/asymmetric_softcap/op.h"

#include "framework/graph/row_rules.h"

namespace mulligan::ops {

// The forward kernel also reads the two caps, which hold no tokens.
const KernelRules asymmetric_softcap_rules{
    {"asymmetric_softcap_fwd", RowRule::row_wise, "ippo", "capped logits", "cross entropy"},
    {"asymmetric_softcap_bwd", RowRule::mixing, "", "", "cross entropy"}};

Value capped(Tape& tape, Value z, Value positive, Value negative) {
  Graph& graph = tape.graph();
  const Value y = graph.scratch(graph.type(z), "capped logits");
  graph.call("asymmetric_softcap_fwd", {z, positive, negative, y});
  tape.record({y}, {z, positive, negative}, [=](Backward& b) {
    const auto dz = b.into(z);
    const Value dpositive = b.into(positive).value, dnegative = b.into(negative).value;
    b.graph().call("asymmetric_softcap_bwd", {z, positive, negative, b.of(y), dz.value, dpositive, dnegative},
                   {{"accumulate_dz", dz.accumulate}});
  });
  return y;
}

}  // namespace mulligan::ops
