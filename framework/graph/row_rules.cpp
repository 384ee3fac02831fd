#include "framework/graph/row_rules.h"

#include <algorithm>
#include <vector>

namespace mulligan {
namespace {

std::vector<KernelRows>& registered() {
  static std::vector<KernelRows> rows;
  return rows;
}

// Kernels of no op.
const KernelRules rules{{"cast", RowRule::elementwise, "io"},      {"scale_by", RowRule::elementwise, "up"},
                        {"lerp_into", RowRule::elementwise, "ui"}, {"sum_f64", RowRule::mixing, ""},
                        {"sum_squares_f64", RowRule::mixing, ""},  {"clip_scale", RowRule::mixing, ""},
                        {"record_scalar", RowRule::mixing, ""},    {"uniform_draws", RowRule::mixing, ""},
                        {"gradient_noise", RowRule::mixing, ""}};

}  // namespace

KernelRules::KernelRules(std::initializer_list<KernelRows> rows) {
  registered().insert(registered().end(), rows.begin(), rows.end());
}

std::span<const KernelRows> kernel_rows() {
  return registered();
}

const KernelRows* rows_of_kernel(std::string_view kernel) {
  const auto found = std::ranges::find(registered(), kernel, &KernelRows::kernel);
  return found == registered().end() ? nullptr : &*found;
}

}  // namespace mulligan
