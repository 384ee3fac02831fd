#include "framework/graph/ops/scale_rows.h"

#include <stdexcept>

#include "framework/graph/row_rules.h"

namespace mulligan::ops {
namespace {

const KernelRules rules{{"scale_rows_fwd", RowRule::mixing, ""}, {"scale_rows_bwd", RowRule::mixing, ""}};

}  // namespace

bool has_scale_rows(const FusedKernels& fused) {
  return fused.have({"scale_rows_fwd", "scale_rows_bwd"});
}

Value scale_rows(Tape& tape, Value weight, Value scale) {
  Graph& graph = tape.graph();
  const Value y = graph.scratch(graph.type(weight), "scaled weight");
  graph.call("scale_rows_fwd", {weight, scale, y});
  tape.keep_gradient_in(y, MLG_F32);
  tape.record({y}, {weight, scale}, [=](Backward& b) {
    const auto dweight = b.into(weight), dscale = b.into(scale);
    for (const auto& target : {dweight, dscale}) {
      if (target.value && target.accumulate == 0) throw std::logic_error("scale_rows: a computed matrix");
    }
    b.graph().call("scale_rows_bwd", {weight, scale, b.of(y), dweight.value, dscale.value});
  });
  return y;
}

}  // namespace mulligan::ops
