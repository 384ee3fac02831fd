// The core kernels that only a graph with fused kernels calls.
#pragma once

#include <algorithm>
#include <string_view>

namespace mulligan {

inline constexpr std::string_view fused_core_kernels[] = {
    "concat_rows_fwd",
    "concat_rows_bwd",
    "lane_chain_fwd",
    "lane_chain_bwd",
    "lane_mean_norm_fwd",
    "lane_mean_norm_bwd",
    "linear_leaky_relu_squared_fwd",
    "linear_leaky_relu_squared_bwd",
    "matmul_add",
    "qkv_split_norm_rope_fwd",
    "qkv_split_norm_rope_bwd",
    "residual_chain_fwd",
    "residual_chain_bwd",
    "scale_rows_fwd",
    "scale_rows_bwd",
    "symmetric_matmul",
};

inline bool is_fused_core_kernel(std::string_view name) {
  return std::ranges::find(fused_core_kernels, name) != std::end(fused_core_kernels);
}

}  // namespace mulligan
