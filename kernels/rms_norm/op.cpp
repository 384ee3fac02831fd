#include "kernels/rms_norm/op.h"

#include "framework/graph/row_rules.h"

namespace mulligan::ops {

const KernelRules rms_norm_rules{
    {"rms_norm_fwd", RowRule::row_wise, "io", "norm", "residual and norm, forward"},
    {"rms_norm_bwd", RowRule::row_wise, "iia", "", "residual and norm, backward"}};

Value rms_norm(Tape& tape, Value x, double scale, double eps) {
  Graph& graph = tape.graph();
  const Value y = graph.scratch(graph.type(x), "rms_norm");
  tape.call("rms_norm", {x}, {y}, {{"scale", scale}, {"eps", eps}}, {{x, "dx"}});
  return y;
}

}  // namespace mulligan::ops
