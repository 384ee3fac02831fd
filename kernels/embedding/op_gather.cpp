#include "kernels/embedding/op_gather.h"

namespace mulligan::ops {

namespace {

std::vector<Attribute> scaled(double alpha, double accumulate) {
  return {{"alpha", alpha}, {"beta", 0.0}, {"accumulate_y", accumulate}};
}

}  // namespace

// An embedding whose table is x; its backward kernel adds into f32.
Value gather_rows(Tape& tape, Value x, Value rows) {
  Graph& graph = tape.graph();
  const TensorType type = graph.type(x);
  const std::int64_t taken = graph.type(rows).dims[0], width = type.elements() / type.dims[0];
  TensorType of_rows = type;
  of_rows.dims[0] = taken;
  const Value y = graph.scratch(of_rows, "gathered rows");
  const auto matrix = [width](Graph& g, Value value) {
    const TensorType& whole = g.type(value);
    return g.view(value, 0, TensorType(whole.dtype, {whole.dims[0], width}));
  };
  graph.call("embedding_fwd", {rows, matrix(graph, x), matrix(graph, y)});
  tape.record({y}, {x}, [=](Backward& b) {
    Graph& g = b.graph();
    const auto dx = b.into(x);
    const bool direct = type.dtype == MLG_F32;
    const Value sum = direct ? dx.value : g.scratch(type.as(MLG_F32), "scattered rows");
    // Zero times x: rows that were not gathered have no gradient.
    if (!direct || dx.accumulate == 0) g.call("axpby", {x, Value{}, sum}, scaled(0.0, 0.0));
    g.call("embedding_bwd", {rows, matrix(g, b.of(y)), matrix(g, sum)});
    if (!direct) g.call("axpby", {sum, Value{}, dx.value}, scaled(1.0, dx.accumulate));
  });
  return y;
}

}  // namespace mulligan::ops
