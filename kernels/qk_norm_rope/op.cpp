#include "kernels/qk_norm_rope/op.h"

#include "framework/graph/row_rules.h"

namespace mulligan::ops {

const KernelRules qk_norm_rope_rules{
    {"qk_norm_rope_fwd", RowRule::row_wise, "ipppo", "q or k (post-rope)", "q-k norm, rotary, XSA, gate"},
    {"qk_norm_rope_bwd", RowRule::mixing, "", "", "q-k norm, rotary, XSA, gate"}};

std::vector<Attribute> qk_norm_rope_attributes(const QkNormRope& options) {
  return {{"rope_dims", static_cast<double>(options.rope_dims)},
          {"row_length", static_cast<double>(options.row_length)},
          {"norm", options.norm ? 1.0 : 0.0},
          {"eps", options.eps}};
}

Value qk_norm_rope(Tape& tape, Value x, Value cos, Value sin, Value gain, const QkNormRope& options) {
  return tape.call("qk_norm_rope", {x, cos, sin, gain}, "rotated", qk_norm_rope_attributes(options),
                   {{x, "dx"}, {gain}});
}

}  // namespace mulligan::ops
