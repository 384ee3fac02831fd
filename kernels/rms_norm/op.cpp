#include "kernels/rms_norm/op.h"

#include "framework/graph/row_rules.h"

namespace mulligan::ops {

const KernelRules rms_norm_rules{
    {"rms_norm_fwd", RowRule::row_wise, "io", "norm", "residual and norm, forward"},
    {"rms_norm_bwd", RowRule::row_wise, "iia", "", "residual and norm, backward"}};

Value rms_norm(Tape& tape, Value x, double scale, double eps) {
  return tape.call("rms_norm", {x}, "rms_norm", {{"scale", scale}, {"eps", eps}}, {{x, "dx"}});
}

}  // namespace mulligan::ops
