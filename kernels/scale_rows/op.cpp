#include "kernels/scale_rows/op.h"

#include <stdexcept>

#include "framework/graph/row_rules.h"

namespace mulligan::ops {

const KernelRules scale_rows_rules{{"scale_rows_fwd", RowRule::mixing, "", "scaled weights", "", true},
                                   {"scale_rows_bwd", RowRule::mixing, "", "", "", true}};

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
