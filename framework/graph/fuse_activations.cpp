// The MLP's activation f(u) = (u > 0 ? u : slope u)^2 joins the matmuls on both sides of it:
//
//   forward    u = x W^T,  y = f(u)           becomes  u, y = linear_leaky_relu_squared_fwd(x, W)
//   backward   dy = dz V,  du = dy * f'(u)    becomes  du = linear_leaky_relu_squared_bwd(dz, V, u)
//
// u is written only where another call reads it. There is no dy any more, so nothing else may read that.
#include "framework/graph/graph_rewrite.h"
#include "framework/graph/passes.h"

namespace mulligan {
namespace {

constexpr const char* activated_forward = "linear_leaky_relu_squared_fwd";
constexpr const char* activated_backward = "linear_leaky_relu_squared_bwd";

struct Matmul {
  Value a, b, c;
};

// The matmul that alone makes the value: of a linear layer, or the gradient of its input.
std::optional<std::size_t> matmul_of(const GraphRewrite& graph, Value value, bool transpose_b) {
  const std::optional<std::size_t> at = graph.only_writer(value);
  const bool plain = at && graph.is(*at, "matmul") && graph.attribute(*at, "transpose_a") == 0 &&
                     (graph.attribute(*at, "transpose_b") != 0) == transpose_b &&
                     graph.attribute(*at, "beta") == 0;
  return plain ? at : std::nullopt;
}

void fuse_forward_of(GraphRewrite& graph, std::size_t at) {
  const Call activation = graph.call(at);
  const Value u = activation.arguments[0], y = activation.arguments[1];
  const std::optional<std::size_t> up = matmul_of(graph, u, true);
  if (!up) return;
  const auto matmul = named<Matmul>(graph.call(*up));
  const Value kept_u = graph.needed_outside(u, {*up, at}) ? u : Value{};
  graph.replace({*up, at}, {activated_forward, {matmul.a, matmul.b, kept_u, y}, activation.attributes});
}

void fuse_backward_of(GraphRewrite& graph, std::size_t at) {
  const Call activation = graph.call(at);
  const Value u = activation.arguments[0], dy = activation.arguments[1], du = activation.arguments[2];
  const std::optional<std::size_t> forward = graph.only_writer(u), down = matmul_of(graph, dy, false);
  if (!forward || !graph.is(*forward, activated_forward) || !down ||
      graph.attribute(at, "accumulate_du") != 0 || graph.needed_outside(dy, {*down, at}))
    return;
  const auto matmul = named<Matmul>(graph.call(*down));
  graph.replace({*down, at},
                {activated_backward, {matmul.a, matmul.b, u, du}, {{"slope", graph.attribute(at, "slope")}}});
}

}  // namespace

std::size_t fuse_activations(Graph& graph, const CallAccess& access, std::size_t split) {
  GraphRewrite rewrite(graph, access, split);
  for (std::size_t i = 0; i < graph.calls().size(); ++i) {
    if (rewrite.is(i, "leaky_relu_squared_fwd")) fuse_forward_of(rewrite, i);
    if (rewrite.is(i, "leaky_relu_squared_bwd")) fuse_backward_of(rewrite, i);
  }
  return rewrite.apply(graph);
}

std::size_t fuse_calls(Graph& graph, const FusedKernels& fused, std::size_t split) {
  if (fused.have({activated_forward, activated_backward}))
    split = fuse_activations(graph, fused.access(), split);
  if (fused.have({"residual_chain_fwd", "residual_chain_bwd"}))
    split = fuse_residuals(graph, fused.access(), split);
  return split;
}

}  // namespace mulligan
