// Host side of attention.cuh.
#pragma once

#include <mulligan/cuda/attention.cuh>
#include <mulligan/cuda/row_plan.hpp>

namespace mulligan::cuda {

// Gives the constants of attention.cuh for q [T, H, h] and k [T, K, h].
inline void attention_constants(sdk::CudaCall& call, std::uint32_t q, std::uint32_t k) {
  const std::int64_t width = call.dim(q, 2);
  call.require(width <= kMostWidth, q,
               "must have heads of at most " + std::to_string(kMostWidth) + " elements on the cuda backend");
  call.require(call.dim(q, 0) < (std::int64_t{1} << 31) - 1024, q, "must have fewer than 2^31 tokens");
  call.constant("head_width", width);
  call.constant("query_heads", call.dim(q, 1));
  call.constant("kv_heads", call.dim(k, 1));
  call.constant("channels", (width + 31) / 32);
}

inline std::int64_t blocks_of(std::int64_t tokens, int warps) {
  return (tokens + warps * kOwned - 1) / (warps * kOwned);
}

}  // namespace mulligan::cuda
