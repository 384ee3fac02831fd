// Host side of rotary.cuh.
#pragma once

#include <mulligan/cuda/head_plan.hpp>
#include <mulligan/cuda/rotary.cuh>

#include <algorithm>
#include <numeric>

#include "kernels/qk_norm_rope/signature_rotary.h"

namespace mulligan::cuda {

// Tokens of a row: the position of token t is t mod row_length.
inline int rotary_row_length(const sdk::CudaCall& call) {
  return std::max(1, static_cast<int>(call.attribute(shapes::Rotary::row_length)));
}

// Gives the constants of rotary.cuh without those of heads.cuh; returns what accesses must divide.
inline std::int64_t rotary_constants(sdk::CudaCall& call, std::int64_t head_width) {
  using Shape = shapes::Rotary;
  const auto half_dims = static_cast<std::int64_t>(call.attribute(Shape::rope_dims)) / 2;
  call.constant("half_dims", half_dims);
  call.constant("normalised", call.flag(Shape::norm));
  call.numbers({Shape::eps});
  return std::gcd(head_width, half_dims);
}

// Tokens shared out for the sums of dgain: the pieces depend on their number alone.
struct TokenPieces {
  std::int64_t length, count;
  explicit TokenPieces(std::int64_t tokens, std::int64_t most = sdk::kPieces)
      : length(std::max<std::int64_t>(8, (tokens + most - 1) / most)),
        count((tokens + length - 1) / length) {}
};

}  // namespace mulligan::cuda
