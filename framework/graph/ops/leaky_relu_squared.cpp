#include "framework/graph/ops/leaky_relu_squared.h"

#include "framework/graph/row_rules.h"

namespace mulligan::ops {
namespace {

const KernelRules rules{{"leaky_relu_squared_fwd", RowRule::elementwise, "io"},
                        {"leaky_relu_squared_bwd", RowRule::elementwise, "iia"}};

}  // namespace

Value leaky_relu_squared(Tape& tape, Value u, double slope) {
  Graph& graph = tape.graph();
  const Value y = graph.scratch(graph.type(u), "activation");
  graph.call("leaky_relu_squared_fwd", {u, y}, {{"slope", slope}});
  tape.record({y}, {u}, [=](Backward& b) {
    const auto du = b.into(u);
    b.graph().call("leaky_relu_squared_bwd", {u, b.of(y), du.value},
                   {{"slope", slope}, {"accumulate_du", du.accumulate}});
  });
  return y;
}

}  // namespace mulligan::ops
