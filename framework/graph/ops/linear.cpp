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

// c = a op(weight) + beta c.
void weight_product(Graph& graph, Value a, Value weight, Value c, bool transpose_b, double beta) {
  if (graph.type(weight).dtype == graph.type(a).dtype) {
    graph.call("matmul", {a, weight, c}, matmul_attributes(false, transpose_b, beta));
  } else {
    graph.call("widened_matmul", {a, weight, c}, {{"transpose_b", transpose_b ? 1.0 : 0.0}, {"beta", beta}});
  }
}

}  // namespace

Value linear_forward(Graph& graph, Value x, Value weight, const TensorType& result) {
  const std::int64_t out = graph.type(weight).dims[0], in = graph.type(weight).dims[1];
  const Value y = graph.scratch(result, "linear");
  weight_product(graph, as_matrix(graph, x, in), weight, as_matrix(graph, y, out), true, 0.0);
  return y;
}

void linear_weight_gradient(Backward& backward, Value x, Value weight, Value y) {
  Graph& graph = backward.graph();
  const std::int64_t out = graph.type(weight).dims[0], in = graph.type(weight).dims[1];
  const auto dw = backward.into(weight);
  if (!dw.value) return;
  graph.call("matmul", {as_matrix(graph, backward.of(y), out), as_matrix(graph, x, in), dw.value},
             matmul_attributes(true, false, dw.accumulate));
}

void linear_backward(Backward& backward, Value x, Value weight, Value y) {
  linear_weight_gradient(backward, x, weight, y);
  Graph& graph = backward.graph();
  const std::int64_t out = graph.type(weight).dims[0], in = graph.type(weight).dims[1];
  const auto dx = backward.into(x);
  if (!dx.value) return;
  weight_product(graph, as_matrix(graph, backward.of(y), out), weight, as_matrix(graph, dx.value, in), false,
                 dx.accumulate);
}

Value linear(Tape& tape, Value x, Value weight, const TensorType& result) {
  const Value y = linear_forward(tape.graph(), x, weight, result);
  tape.record({y}, {x, weight}, [=](Backward& b) { linear_backward(b, x, weight, y); });
  return y;
}

}  // namespace mulligan::ops
