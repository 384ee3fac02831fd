#include "framework/adapters/row_rules.h"

#include <algorithm>

namespace mulligan {
namespace {

// The backward kernels that add up gradients of parameters mix, as a whole.
constexpr KernelRows kKernels[] = {
    {"axpby", RowRule::elementwise, "iia"},
    {"cast", RowRule::elementwise, "io"},
    {"leaky_relu_squared_fwd", RowRule::elementwise, "io"},
    {"leaky_relu_squared_bwd", RowRule::elementwise, "iia"},
    {"softcap_fwd", RowRule::elementwise, "io"},
    {"softcap_bwd", RowRule::elementwise, "iia"},
    {"scale_by", RowRule::elementwise, "up"},
    {"lerp_into", RowRule::elementwise, "ui"},
    {"rms_norm_fwd", RowRule::row_wise, "io"},
    {"rms_norm_bwd", RowRule::row_wise, "iia"},
    {"residual_mix_norm_fwd", RowRule::row_wise, "iipoo"},
    {"scaled_add_norm_fwd", RowRule::row_wise, "iipoo"},
    {"qk_norm_rope_fwd", RowRule::row_wise, "ipppo"},
    {"head_gate_xsa_fwd", RowRule::row_wise, "iiio"},
    {"skip_merge_fwd", RowRule::row_wise, "iippo"},
    {"lane_merge_fwd", RowRule::row_wise, "iiiippppoo"},
    {"matmul", RowRule::product, "iia"},
    {"attention_fwd", RowRule::causal, ""},
    {"embedding_fwd", RowRule::mixing, ""},
    {"embedding_bwd", RowRule::mixing, ""},
    {"residual_mix_norm_bwd", RowRule::mixing, ""},
    {"scaled_add_norm_bwd", RowRule::mixing, ""},
    {"qk_norm_rope_bwd", RowRule::mixing, ""},
    {"attention_bwd", RowRule::mixing, ""},
    {"head_gate_xsa_bwd", RowRule::mixing, ""},
    {"skip_merge_bwd", RowRule::mixing, ""},
    {"lane_merge_bwd", RowRule::mixing, ""},
    {"cross_entropy_fwd", RowRule::mixing, ""},
    {"cross_entropy_bwd", RowRule::mixing, ""},
    {"sum_f64", RowRule::mixing, ""},
    {"sum_squares_f64", RowRule::mixing, ""},
    {"clip_scale", RowRule::mixing, ""},
    {"record_scalar", RowRule::mixing, ""},
};

}  // namespace

std::span<const KernelRows> kernel_rows() {
  return kKernels;
}

const KernelRows* rows_of_kernel(std::string_view kernel) {
  const auto* found = std::ranges::find(kKernels, kernel, &KernelRows::kernel);
  return found == std::end(kKernels) ? nullptr : found;
}

}  // namespace mulligan
