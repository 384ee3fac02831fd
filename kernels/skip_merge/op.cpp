#include "kernels/skip_merge/op.h"

#include "framework/graph/row_rules.h"

namespace mulligan::ops {

const KernelRules skip_merge_rules{{"skip_merge_fwd", RowRule::row_wise, "iippo", "skip connection"},
                                   {"skip_merge_bwd", RowRule::mixing, ""}};

Value skip_merge(Tape& tape, Value x, Value s, Value weight, Value gate) {
  return tape.call("skip_merge", {x, s, weight, gate}, "skip merge", {},
                   {{x, "dx"}, {s, "ds"}, {weight}, {gate}});
}

}  // namespace mulligan::ops
