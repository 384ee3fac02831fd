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
  tape.call("residual_mix_norm", {x, x0, mix}, {out.sum, out.norm}, {{"scale", scale}, {"eps", eps}},
            {{x, "dx"}, {x0, "dx0"}, {mix}});
  return out;
}

}  // namespace mulligan::ops
