#include "plugins/kernels/embedding/op_gather.h"

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
  const Value y =
      graph.scratch(TensorType(type.dtype, {graph.type(rows).dims[0], type.dims[1]}), "gathered rows");
  graph.call("embedding_fwd", {rows, x, y});
  tape.record({y}, {x}, [=](Backward& b) {
    Graph& g = b.graph();
    const auto dx = b.into(x);
    const bool direct = type.dtype == MLG_F32;
    const Value sum = direct ? dx.value : g.scratch(type.as(MLG_F32), "scattered rows");
    // Zero times x: rows that nobody gathered have no gradient.
    if (!direct || dx.accumulate == 0) g.call("axpby", {x, Value{}, sum}, scaled(0.0, 0.0));
    g.call("embedding_bwd", {rows, b.of(y), sum});
    if (!direct) g.call("axpby", {sum, Value{}, dx.value}, scaled(1.0, dx.accumulate));
  });
  return y;
}

}  // namespace mulligan::ops
