#include "kernels/weighted_rms_norm/op.h"

#include "framework/graph/row_rules.h"

namespace mulligan::ops {

const KernelRules weighted_rms_norm_rules{{"weighted_rms_norm_fwd", RowRule::row_wise, "ipo", "norm"},
                                          {"weighted_rms_norm_bwd", RowRule::mixing, ""}};

Value weighted_rms_norm(Tape& tape, Value x, Value weight, double eps) {
  return tape.call("weighted_rms_norm", {x, weight}, "weighted norm", {{"eps", eps}}, {{x, "dx"}, {weight}});
}

}  // namespace mulligan::ops
