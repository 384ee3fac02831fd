#include "kernels/round_fp8/op.h"

#include "framework/graph/row_rules.h"
#include "kernels/matmul/op.h"

namespace mulligan::ops {
namespace {

const KernelRules round_fp8_rules{{"round_fp8", RowRule::elementwise, "io", "rounded to FP8"}};

Value rounded(Graph& graph, Value x, double exponent_bits, double scale) {
  const Value y = graph.scratch(graph.type(x), "rounded to FP8");
  graph.call("round_fp8", {x, y}, {{"exponent_bits", exponent_bits}, {"scale", scale}});
  return y;
}

}  // namespace

Value fp8_linear(Tape& tape, Value x, Value weight, const TensorType& result, const Fp8Scales& scales) {
  Graph& graph = tape.graph();
  const LinearOperands read{rounded(graph, x, 4, scales.input), rounded(graph, weight, 4, scales.weight)};
  const Value y = graph.scratch(result, "linear");
  linear_matmul(graph, read, y);
  tape.record({y}, {x, weight}, [=](Backward& b) {
    linear_gradients(b, rounded(b.graph(), b.of(y), 5, scales.gradient), read, {x, weight});
  });
  return y;
}

}  // namespace mulligan::ops
