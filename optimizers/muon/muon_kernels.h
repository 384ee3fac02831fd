// What Muon does before and after the orthogonalisation of an update.
#pragma once

#include <mulligan/fused_update.hpp>

namespace mulligan::optimizers {

// Numbers that change from step to step, in the f32 tensor `scalars` of both kernels.
enum MuonScalar : unsigned { muon_lr, muon_momentum, muon_weight_decay_factor, muon_scalar_count };

// buf <- momentum * buf + g;  u = nesterov ? g + momentum * buf : buf
// row_normalize: u[row] <- u[row] / max(|u[row]|, 1e-7)
// direction = u / (|u|_F + 1e-7), one Frobenius norm per matrix
// gradient [B,r,c] or [r,c] f32; momentum_buffer and direction of that shape, each f32 or bf16. Arithmetic in
// f32; sums run over rows, then over the rows' sums in f64,
// so the result does not depend on the number of threads.
struct MuonMomentum {
  static constexpr const char* name = "muon_momentum";
  static constexpr const char* signature =
      "in gradient, inout momentum_buffer, in scalars, out direction; nesterov row_normalize";
  enum Argument : unsigned { gradient, momentum_buffer, scalars, direction };
  enum Attribute : unsigned { nesterov, row_normalize };

  static void check_arguments(const sdk::CallChecks& call);
  // check_arguments, and the workspace of run().
  static void check(sdk::CallChecks& call);
  static void run(const sdk::Launch& call);
};

// With lr_p = lr * lr_multiplier: p <- p (1 - lr_p * weight_decay * weight_decay_factor) - lr_p * scale *
// direction. direction and master of one shape, each f32 or bf16; f32 arithmetic.
struct MuonApply {
  static constexpr const char* name = "muon_apply";
  static constexpr const char* signature =
      "in direction, inout master, in scalars; lr_multiplier weight_decay scale";
  enum Argument : unsigned { direction, master, scalars };
  enum Attribute : unsigned { lr_multiplier, weight_decay, scale };

  static void check(sdk::CallChecks& call);
  static void run(const sdk::Launch& call);
};

// muon_momentum of gradients times gradient_scale [1] f32.
struct MuonScaledMomentum : MuonMomentum {
  static constexpr const char* name = "muon_scaled_momentum";
  static constexpr const char* signature =
      "in gradient, inout momentum_buffer, in scalars, out direction, in gradient_scale; "
      "nesterov row_normalize";
  enum Scale : unsigned { gradient_scale = 4 };

  static void check_arguments(const sdk::CallChecks& call);
  static void check(sdk::CallChecks& call);
  static void run(const sdk::Launch& call);
};

// muon_apply, and an average and a copy of the new master (fused_update.hpp).
struct MuonUpdate {
  static constexpr const char* name = "muon_update";
  static constexpr const char* signature =
      "in direction, inout master, in scalars, inout? average, out? copy; "
      "lr_multiplier weight_decay scale average_decay";
  enum Argument : unsigned { direction, master, scalars, average, copy };
  enum Attribute : unsigned { lr_multiplier, weight_decay, scale, average_decay };
  static constexpr sdk::FusedUpdate fused{master, sdk::FusedUpdate::no_scale, average, copy, average_decay};

  static void check(sdk::CallChecks& call);
  static void run(const sdk::Launch& call);
};

// The same for the cuda backend (muon_kernels.cu).
mlg_kernel muon_momentum_cuda();
mlg_kernel muon_scaled_momentum_cuda();
mlg_kernel muon_apply_cuda();
mlg_kernel muon_update_cuda();

}  // namespace mulligan::optimizers
