#include "kernels/asymmetric_softcap/op.h"

#include "framework/graph/row_rules.h"

namespace mulligan::ops {

// The forward kernel also reads the two caps, which hold no tokens.
const KernelRules asymmetric_softcap_rules{
    {"asymmetric_softcap_fwd", RowRule::row_wise, "ippo", "capped logits", "cross entropy"},
    {"asymmetric_softcap_bwd", RowRule::mixing, "", "", "cross entropy"}};

Value capped(Tape& tape, Value z, Value positive, Value negative) {
  return tape.call("asymmetric_softcap", {z, positive, negative}, "capped logits", {},
                   {{z, "dz"}, {positive}, {negative}});
}

}  // namespace mulligan::ops
