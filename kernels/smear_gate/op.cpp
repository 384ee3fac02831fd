#include "kernels/smear_gate/op.h"

#include "framework/graph/row_rules.h"

namespace mulligan::ops {

// A row reads the row before it.
const KernelRules smear_gate_rules{{"smear_gate_fwd", RowRule::mixing, "", "smeared embedding"},
                                   {"smear_gate_bwd", RowRule::mixing, ""}};

Value smear(Tape& tape, Value x, Value tokens, Value weight, Value lambda, const Smear& options) {
  Graph& graph = tape.graph();
  const Value y = graph.scratch(graph.type(x), "smeared embedding");
  const std::vector<Attribute> attributes = {{"row_length", static_cast<double>(options.row_length)},
                                             {"document_start", static_cast<double>(options.document_start)}};
  graph.call("smear_gate_fwd", {x, tokens, weight, lambda, y}, attributes);
  tape.record({y}, {x, weight, lambda}, [=](Backward& b) {
    const auto dx = b.into(x);
    const Value dweight = b.into(weight).value, dlambda = b.into(lambda).value;
    std::vector<Attribute> backward_attributes = attributes;
    backward_attributes.push_back({"accumulate_dx", dx.accumulate});
    b.graph().call("smear_gate_bwd", {x, tokens, weight, lambda, b.of(y), dx.value, dweight, dlambda},
                   backward_attributes);
  });
  return y;
}

}  // namespace mulligan::ops
