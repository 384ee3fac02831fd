#include "kernels/softcap/op.h"

#include "framework/graph/row_rules.h"

namespace mulligan::ops {

const KernelRules softcap_rules{{"softcap_fwd", RowRule::elementwise, "io", "capped logits", "cross entropy"},
                                {"softcap_bwd", RowRule::elementwise, "iia", "", "cross entropy"}};

Value softcap(Tape& tape, Value z, double cap) {
  return tape.call("softcap", {z}, "capped logits", {{"cap", cap}}, {{z, "dz"}});
}

}  // namespace mulligan::ops
