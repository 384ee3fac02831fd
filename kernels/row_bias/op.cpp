#include "kernels/row_bias/op.h"

#include "framework/graph/row_rules.h"

namespace mulligan::ops {

const KernelRules row_bias_rules{{"row_bias_fwd", RowRule::row_wise, "ipo"},
                                 {"row_bias_bwd", RowRule::mixing, ""}};

Value row_bias(Tape& tape, Value x, Value bias) {
  Graph& graph = tape.graph();
  const std::int64_t width = graph.type(bias).elements();
  const auto rows = [width](Graph& of, Value value) {
    const TensorType& type = of.type(value);
    return of.reshape(value, TensorType(type.dtype, {type.elements() / width, width}));
  };
  const Value y = graph.scratch(graph.type(x), "biased");
  graph.call("row_bias_fwd", {rows(graph, x), bias, rows(graph, y)});
  tape.record({y}, {x, bias}, [=](Backward& b) {
    const Value dy = b.of(y);
    if (const auto dbias = b.into(bias); dbias.value) {
      b.graph().call("row_bias_bwd", {rows(b.graph(), dy), dbias.value});
    }
    // The gradient of x is dy itself; nothing reads that after this rule.
    const auto dx = b.into_storage_of(x, dy);
    if (!dx.value || dx.value == dy) return;
    b.graph().call("axpby", {dy, Value{}, dx.value},
                   {{"alpha", 1.0}, {"beta", 0.0}, {"accumulate_y", dx.accumulate}});
  });
  return y;
}

}  // namespace mulligan::ops
