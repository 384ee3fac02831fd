#include "kernels/smear_gate/op.h"

#include "framework/graph/row_rules.h"

namespace mulligan::ops {

// A row reads the row before it.
const KernelRules smear_gate_rules{{"smear_gate_fwd", RowRule::mixing, "", "smeared embedding"},
                                   {"smear_gate_bwd", RowRule::mixing, ""}};

Value smear(Tape& tape, Value x, Value tokens, Value weight, Value lambda, const Smear& options) {
  return tape.call("smear_gate", {x, tokens, weight, lambda}, "smeared embedding",
                   {{"row_length", static_cast<double>(options.row_length)},
                    {"document_start", static_cast<double>(options.document_start)}},
                   {{x, "dx"}, {weight}, {lambda}});
}

}  // namespace mulligan::ops
