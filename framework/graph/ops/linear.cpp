#include "framework/graph/ops/linear.h"

namespace mulligan::ops {

namespace {

// The value seen as [rows, columns].
Value as_matrix(Graph& graph, Value value, std::int64_t columns) {
  const TensorType& type = graph.type(value);
  return graph.reshape(value, TensorType(type.dtype, {type.elements() / columns, columns}));
}

std::vector<Attribute> matmul_attributes(bool transpose_a, bool transpose_b, double beta) {
  return {{"transpose_a", transpose_a ? 1.0 : 0.0},
          {"transpose_b", transpose_b ? 1.0 : 0.0},
          {"alpha", 1.0},
          {"beta", beta}};
}

}  // namespace

Value linear(Tape& tape, Value x, Value weight, const TensorType& result) {
  Graph& graph = tape.graph();
  const std::int64_t out = graph.type(weight).dims[0];
  const std::int64_t in = graph.type(weight).dims[1];
  const Value y = graph.scratch(result, "linear");
  graph.call("matmul", {as_matrix(graph, x, in), weight, as_matrix(graph, y, out)},
             matmul_attributes(false, true, 0.0));
  tape.record({y}, {x, weight}, [=](Backward& b) {
    Graph& g = b.graph();
    const Value dy = as_matrix(g, b.of(y), out);
    if (const auto dw = b.into(weight); dw.value) {
      g.call("matmul", {dy, as_matrix(g, x, in), dw.value}, matmul_attributes(true, false, dw.accumulate));
    }
    if (const auto dx = b.into(x); dx.value) {
      g.call("matmul", {dy, weight, as_matrix(g, dx.value, in)},
             matmul_attributes(false, false, dx.accumulate));
    }
  });
  return y;
}

}  // namespace mulligan::ops
