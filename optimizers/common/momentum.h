// The momentum of a matrix optimiser, and the direction that is orthogonalised.
//
// What lies in this folder is part of several plugins, and no two plugins may bring kernels of one name: a plugin
// brings each kernel under its own name and the kernel's (named_kernel.h).
#pragma once

#include <mulligan/cpu_kernel.hpp>

namespace mulligan::optimizers {

// Numbers that change from step to step, in the f32 tensor `scalars` of all kernels of matrix optimisers.
enum MatrixScalar : unsigned { matrix_lr, matrix_momentum, matrix_weight_decay_factor, matrix_scalar_count };

// With s = 1 (mean: 1 - momentum), times gradient_scale [1] f32:
//   buf <- momentum * buf + s g;  u = nesterov ? s g + momentum * buf : buf
//   row_normalize: u[row] <- u[row] / max(|u[row]|, 1e-7)
//   direction = normalize ? u / (|u|_F + 1e-7), one Frobenius norm per matrix : u
// gradient [B,r,c] or [r,c] f32; momentum_buffer and direction of that shape, each f32 or bf16. Arithmetic in
// f32; sums run over rows, then over the rows' sums in f64,
// so the result does not depend on the number of threads.
struct MatrixMomentum {
  static constexpr const char* name = "momentum";
  static constexpr const char* signature =
      "in gradient, inout momentum_buffer, in scalars, out direction, in? gradient_scale; "
      "nesterov row_normalize mean normalize";
  enum Argument : unsigned { gradient, momentum_buffer, scalars, direction, gradient_scale };
  enum Attribute : unsigned { nesterov, row_normalize, mean, normalize };

  static void check(const sdk::CallChecks& call);
  static std::size_t workspace_bytes(const sdk::CallChecks& call);
  static void run(const sdk::Launch& call);
};

// The same for the cuda backend (momentum.cu).
extern const mlg_kernel matrix_momentum_cuda;

}  // namespace mulligan::optimizers
