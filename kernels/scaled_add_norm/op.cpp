#include "kernels/scaled_add_norm/op.h"

#include "framework/graph/row_rules.h"

namespace mulligan::ops {

const KernelRules scaled_add_norm_rules{
    {"scaled_add_norm_fwd", RowRule::row_wise, "iipoo", "resid and norm", "residual and norm, forward"},
    {"scaled_add_norm_bwd", RowRule::mixing, "", "", "residual and norm, backward"}};

ScaledSum scaled_add_norm(Tape& tape, Value x, Value a, Value scale_vector, double norm_scale, double eps,
                          bool want_norm) {
  Graph& graph = tape.graph();
  const Value sum = graph.scratch(graph.type(x), "residual");
  const Value norm = want_norm ? graph.scratch(graph.type(x), "normed residual") : Value{};
  return scaled_add_norm(tape, x, a, scale_vector, norm_scale, eps, {sum, norm});
}

ScaledSum scaled_add_norm(Tape& tape, Value x, Value a, Value scale_vector, double norm_scale, double eps,
                          const ScaledSum& out) {
  tape.graph().call("scaled_add_norm_fwd", {x, a, scale_vector, out.sum, out.norm},
                    {{"scale", norm_scale}, {"eps", eps}});
  tape.record({out.sum, out.norm}, {x, a, scale_vector}, [=](Backward& b) {
    const Value dsum = b.of(out.sum), dnorm = b.of(out.norm);
    // Without a norm the gradient of x is that of the sum: nothing is copied.
    const bool passes_on = !dnorm && dsum && b.graph().info(dsum).storage == Graph::Storage::scratch;
    auto dx = passes_on ? b.into_storage_of(x, dsum) : b.into(x);
    // Without a scale the gradient of a is that of x.
    const bool shared = !scale_vector && dx.value && dx.accumulate == 0 && b.share(a, dx.value);
    if (dx.value == dsum) dx.value = {};
    const auto da = shared ? Backward::Target{} : b.into(a);
    const Value dscale = b.into(scale_vector).value;
    if (!dx.value && !da.value && !dscale) return;
    b.graph().call(
        "scaled_add_norm_bwd",
        {out.sum, scale_vector ? a : Value{}, scale_vector, dsum, dnorm, dx.value, da.value, dscale},
        {{"scale", norm_scale},
         {"eps", eps},
         {"accumulate_dx", dx.accumulate},
         {"accumulate_da", da.accumulate}});
  });
  return out;
}

}  // namespace mulligan::ops
