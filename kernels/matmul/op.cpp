#include "kernels/matmul/op.h"

#include "framework/graph/row_rules.h"

namespace mulligan::ops {

namespace {

// Optimisers call the fused ones.
const KernelRules matmul_rules{{"matmul", RowRule::matmul, "iia"},
                               {"widened_matmul", RowRule::row_wise, "ipa"},
                               {"symmetric_matmul", RowRule::mixing, "", "", "", true},
                               {"matmul_add", RowRule::mixing, "", "", "", true}};

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
void weight_matmul(Graph& graph, Value a, Value weight, Value c, bool transpose_b, double beta) {
  if (graph.type(weight).dtype == graph.type(a).dtype) {
    graph.call("matmul", {a, weight, c}, matmul_attributes(false, transpose_b, beta));
  } else {
    graph.call("widened_matmul", {a, weight, c}, {{"transpose_b", transpose_b ? 1.0 : 0.0}, {"beta", beta}});
  }
}

}  // namespace

void linear_matmul(Graph& graph, const LinearOperands& read, Value y, double beta) {
  const std::int64_t out = graph.type(read.weight).dims[0], in = graph.type(read.weight).dims[1];
  weight_matmul(graph, as_matrix(graph, read.x, in), read.weight, as_matrix(graph, y, out), true, beta);
}

void linear_gradients(Backward& b, Value dy, const LinearOperands& read, const LinearOperands& of) {
  Graph& graph = b.graph();
  const std::int64_t out = graph.type(read.weight).dims[0], in = graph.type(read.weight).dims[1];
  const Value upstream = as_matrix(graph, dy, out);
  if (const auto dw = b.into(of.weight); dw.value) {
    graph.call("matmul", {upstream, as_matrix(graph, read.x, in), dw.value},
               matmul_attributes(true, false, dw.accumulate));
  }
  if (const auto dx = b.into(of.x); dx.value) {
    weight_matmul(graph, upstream, read.weight, as_matrix(graph, dx.value, in), false, dx.accumulate);
  }
}

void linear_into(Tape& tape, Value x, Value weight, Value y, Value bias) {
  Graph& forward = tape.graph();
  const std::int64_t out = forward.type(weight).dims[0];
  if (bias) forward.call("row_bias_fwd", {Value{}, bias, as_matrix(forward, y, out)});
  linear_matmul(forward, {x, weight}, y, bias ? 1.0 : 0.0);
  std::vector<Value> inputs = {x, weight};
  if (bias) inputs.push_back(bias);
  tape.record({y}, std::move(inputs), [=](Backward& b) {
    Graph& graph = b.graph();
    if (const auto dbias = bias ? b.into(bias) : Backward::Target{}; dbias.value)
      graph.call("row_bias_bwd", {as_matrix(graph, b.of(y), out), dbias.value});
    linear_gradients(b, b.of(y), {x, weight}, {x, weight});
  });
}

Value linear(Tape& tape, Value x, Value weight, const TensorType& result, Value bias) {
  const Value y = tape.graph().scratch(result, "linear");
  linear_into(tape, x, weight, y, bias);
  return y;
}

}  // namespace mulligan::ops
