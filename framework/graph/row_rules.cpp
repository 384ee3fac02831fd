#include "framework/graph/row_rules.h"

#include <algorithm>
#include <vector>

namespace mulligan {
namespace {

std::vector<KernelRows>& registered() {
  static std::vector<KernelRows> rows;
  return rows;
}

// Kernels that belong to no op of framework/graph/ops alone.
const KernelRules rules{
    {"axpby", RowRule::elementwise, "iia"},    {"cast", RowRule::elementwise, "io"},
    {"scale_by", RowRule::elementwise, "up"},  {"lerp_into", RowRule::elementwise, "ui"},
    {"matmul", RowRule::product, "iia"},       {"sum_f64", RowRule::mixing, ""},
    {"sum_squares_f64", RowRule::mixing, ""},  {"clip_scale", RowRule::mixing, ""},
    {"record_scalar", RowRule::mixing, ""},    {"uniform_draws", RowRule::mixing, ""},
    {"symmetric_matmul", RowRule::mixing, ""}, {"matmul_add", RowRule::mixing, ""},
    {"gradient_noise", RowRule::mixing, ""},   {"widened_matmul", RowRule::row_wise, "ipa"},
    {"add_codes", RowRule::mixing, ""}};

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
