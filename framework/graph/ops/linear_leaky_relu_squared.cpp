#include "framework/graph/ops/linear_leaky_relu_squared.h"

#include <stdexcept>

#include "framework/graph/ops/linear.h"
#include "framework/graph/row_rules.h"

namespace mulligan::ops {
namespace {

constexpr const char* forward_kernel = "linear_leaky_relu_squared_fwd";
constexpr const char* backward_kernel = "linear_leaky_relu_squared_bwd";

const KernelRules rules{{forward_kernel, RowRule::row_wise, "ipoo"},
                        {backward_kernel, RowRule::row_wise, "ipio"}};

}  // namespace

bool can_fuse_activation(const Tape& tape) {
  return tape.fused().have({forward_kernel, backward_kernel});
}

Activated linear_leaky_relu_squared(Tape& tape, Value x, Value weight, const TensorType& result, double slope,
                                    bool want_u) {
  Graph& graph = tape.graph();
  Activated out;
  if (want_u || tape.differentiating()) out.u = graph.scratch(result, "linear");
  out.y = graph.scratch(result, "activation");
  graph.call(forward_kernel, {x, weight, out.u, out.y}, {{"slope", slope}});
  if (out.u) tape.record({out.u}, {x, weight}, [=](Backward& b) { linear_backward(b, x, weight, out.u); });
  return out;
}

Value activated_linear(Tape& tape, const Activated& activated, double slope, Value weight,
                       const TensorType& result) {
  Graph& graph = tape.graph();
  const Value out = linear_forward(graph, activated.y, weight, result);
  if (!activated.u) return out;
  tape.record({out}, {activated.u, weight}, [=](Backward& b) {
    linear_weight_gradient(b, activated.y, weight, out);
    if (!b.needed(activated.u)) return;
    const auto du = b.into(activated.u);
    if (du.accumulate != 0) throw std::logic_error("activated_linear: u has another reader");
    b.graph().call(backward_kernel, {b.of(out), weight, activated.u, du.value}, {{"slope", slope}});
  });
  return out;
}

}  // namespace mulligan::ops
