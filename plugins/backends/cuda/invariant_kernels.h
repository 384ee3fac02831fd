// The kernels of a backend that is set to be batch-invariant: what it computes of a row of tokens does not
// depend on how many rows are computed with it.
#pragma once

#include <mulligan/kernel.h>

#include <span>

namespace mulligan::cuda {

// matmul and matmul_add by an own kernel, in the place of cuBLASLt (fixed_matmul.cu).
std::span<const mlg_kernel> fixed_matmul_kernels();

// attention_fwd and attention_bidirectional_fwd whose tiles begin with each segment.
std::span<const mlg_kernel> invariant_attention_forward();

}  // namespace mulligan::cuda
