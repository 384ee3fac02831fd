#include "kernels/residual_mix_norm/op.h"

#include "framework/graph/row_rules.h"

namespace mulligan::ops {

const KernelRules residual_mix_norm_rules{
    {"residual_mix_norm_fwd", RowRule::row_wise, "iipoo", "norm before attention",
     "residual and norm, forward"},
    {"residual_mix_norm_bwd", RowRule::mixing, "", "", "residual and norm, backward"}};

MixedResidual residual_mix_norm(Tape& tape, Value x, Value x0, Value mix, double scale, double eps,
                                bool want_sum) {
  Graph& graph = tape.graph();
  MixedResidual out;
  if (want_sum) out.sum = graph.scratch(graph.type(x), "mixed residual");
  out.norm = graph.scratch(graph.type(x), "normed residual");
  graph.call("residual_mix_norm_fwd", {x, x0, mix, out.sum, out.norm}, {{"scale", scale}, {"eps", eps}});
  tape.record({out.sum, out.norm}, {x, x0, mix}, [=](Backward& b) {
    const Value dsum = out.sum ? b.of(out.sum) : Value{};
    const auto dx = b.into(x);
    const auto dx0 = b.into(x0);
    b.graph().call("residual_mix_norm_bwd",
                   {x, x0, mix, dsum, b.of(out.norm), dx.value, dx0.value, b.into(mix).value},
                   {{"scale", scale},
                    {"eps", eps},
                    {"accumulate_dx", dx.accumulate},
                    {"accumulate_dx0", dx0.accumulate}});
  });
  return out;
}

}  // namespace mulligan::ops
