#include "kernels/axpby/op.h"

#include "framework/graph/row_rules.h"

namespace mulligan::ops {

namespace {

const KernelRules axpby_rules{{"axpby", RowRule::elementwise, "iia", "mean of the lanes"}};

void pass_gradient(Backward& b, Value output, Value input, double factor) {
  const auto target = b.into(input);
  if (!target.value) return;
  b.graph().call("axpby", {b.of(output), Value{}, target.value},
                 {{"alpha", factor}, {"beta", 0.0}, {"accumulate_y", target.accumulate}});
}

}  // namespace

Value add(Tape& tape, Value a, Value b, double alpha, double beta) {
  Graph& graph = tape.graph();
  const Value y = graph.scratch(graph.type(a), "sum");
  graph.call("axpby", {a, b, y}, {{"alpha", alpha}, {"beta", beta}, {"accumulate_y", 0.0}});
  tape.record({y}, {a, b}, [=](Backward& backward) {
    pass_gradient(backward, y, a, alpha);
    pass_gradient(backward, y, b, beta);
  });
  return y;
}

}  // namespace mulligan::ops
