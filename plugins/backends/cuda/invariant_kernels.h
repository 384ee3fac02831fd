// The kernels of a backend that is set to be batch-invariant: what it computes of a row of tokens does not
// depend on how many rows are computed with it.
#pragma once

#include <mulligan/kernel.h>

#include <span>
#include <vector>

namespace mulligan::cuda {

// matmul and matmul_add by an own kernel, in the place of cuBLASLt (fixed_matmul.cu).
std::span<const mlg_kernel> fixed_matmul_kernels();

// attention_fwd and attention_bidirectional_fwd whose tiles begin with each segment.
std::span<const mlg_kernel> invariant_attention_forward();

// `kernels` as such a backend has them: without those whose matmul is the library's
// (linear_leaky_relu_squared, fused; a graph does without), and with the two above.
std::vector<mlg_kernel> invariant_kernels(std::span<const mlg_kernel> kernels);

}  // namespace mulligan::cuda
