#include "kernels/rms_norm/op.h"

#include "framework/graph/row_rules.h"

namespace mulligan::ops {

const KernelRules rms_norm_rules{
    {"rms_norm_fwd", RowRule::row_wise, "io", "norm", "residual and norm, forward"},
    {"rms_norm_bwd", RowRule::row_wise, "iia", "", "residual and norm, backward"}};

Value rms_norm(Tape& tape, Value x, double scale, double eps) {
  Graph& graph = tape.graph();
  const Value y = graph.scratch(graph.type(x), "rms_norm");
  graph.call("rms_norm_fwd", {x, y}, {{"scale", scale}, {"eps", eps}});
  tape.record({y}, {x}, [=](Backward& b) {
    const auto dx = b.into(x);
    b.graph().call("rms_norm_bwd", {x, b.of(y), dx.value},
                   {{"scale", scale}, {"eps", eps}, {"accumulate_dx", dx.accumulate}});
  });
  return y;
}

}  // namespace mulligan::ops
