// A trained scale s of a linear layer's results goes into the layer's weight:
//
//   a = x W^T,  r = y + s * a    becomes    V = scale_rows(W, s),  a' = x V^T,  r = y + a'
//
// V is made once for all passes of the layer. That saves the gradient of the results before they are scaled,
// so nothing else may read those. A matmul that widens its weight (widened_matmul) keeps it as it is: the
// scaled one would be rounded, or as large as what was saved.
#include <functional>
#include <map>
#include <tuple>

#include "framework/graph/graph_rewrite.h"
#include "framework/graph/passes.h"
#include "kernels/matmul/op.h"
#include "kernels/scale_rows/op.h"
#include "kernels/scaled_add_norm/op.h"

namespace mulligan {
namespace {

struct ScaledAdd {
  Value y, a, scale;
  ops::ScaledSum out;
};

}  // namespace

void fuse_output_scales(Tape& tape) {
  if (!tape.differentiating() || !tape.fused().have({"scale_rows_fwd", "scale_rows_bwd"})) return;
  const Graph& graph = tape.graph();
  const CallAccess access = tape.fused().access();
  const GraphRewrite calls(graph, access, 0);
  std::map<std::size_t, std::function<void()>> replaced;
  std::map<std::tuple<std::uint32_t, std::int64_t, std::uint32_t>, Value> scaled;  // by weight and scale
  for (std::size_t at = 0; at < graph.calls().size(); ++at) {
    if (!calls.is(at, "scaled_add_norm_fwd")) continue;
    const auto [y, a, scale, out] = named<ScaledAdd>(calls.call(at));
    const std::optional<std::size_t> matmul = calls.only_writer(a);
    if (!tape.needs_gradient(scale) || !matmul || !calls.is(*matmul, "matmul") ||
        calls.attribute(*matmul, "transpose_b") == 0 || calls.needed_outside(a, {*matmul, at}))
      continue;
    const std::vector<Value>& factors = calls.call(*matmul).arguments;
    const Value weight = factors[1], x = tape.input_of(*matmul).value_or(factors[0]);
    if (graph.info(graph.root(weight)).storage != Graph::Storage::external) continue;
    const auto key = std::make_tuple(graph.root(weight).id, graph.info(weight).offset, scale.id);
    replaced[*matmul] = [=, &tape, &scaled] {
      const auto [known, is_new] = scaled.try_emplace(key);
      if (is_new) known->second = ops::scale_rows(tape, weight, scale);
      ops::linear_into(tape, x, known->second, a);
    };
    const double norm_scale = calls.attribute(at, "scale"), eps = calls.attribute(at, "eps");
    replaced[at] = [=, &tape] { ops::scaled_add_norm(tape, y, a, Value{}, norm_scale, eps, out); };
  }
  tape.rewrite(replaced);
}

}  // namespace mulligan
