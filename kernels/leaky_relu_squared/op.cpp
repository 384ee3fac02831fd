#include "kernels/leaky_relu_squared/op.h"

#include "framework/graph/row_rules.h"

namespace mulligan::ops {

const KernelRules leaky_relu_squared_rules{
    {"leaky_relu_squared_fwd", RowRule::elementwise, "io", "act", "MLP activation"},
    {"leaky_relu_squared_bwd", RowRule::elementwise, "iia", "", "MLP activation"},
    {"linear_leaky_relu_squared_fwd", RowRule::row_wise, "ipoo", "up and act", "", true},
    {"linear_leaky_relu_squared_bwd", RowRule::row_wise, "ipio", "", "", true}};

Value leaky_relu_squared(Tape& tape, Value u, double slope) {
  return tape.call("leaky_relu_squared", {u}, "activation", {{"slope", slope}}, {{u, "du"}});
}

}  // namespace mulligan::ops
