// What NorMuon does with an orthogonalised update (Li et al. 2025, arXiv:2510.05491, in the form of the
// modded-nanogpt arena).
#pragma once

#include <mulligan/cpu_kernel.hpp>

#include "optimizers/common/matrix_shape.h"

namespace mulligan::optimizers {

// Per matrix O = scale * direction of r rows and c columns; a line is a row where r >= c, a column elsewhere.
//   q = mean of O^2 over each line;  v <- beta2 v + (1 - beta2) q
//   O' = O / sqrt(max(v, 1e-10)), line by line;  factors = 1 / sqrt(max(v, 1e-10)) * |O| / max(|O'|, 1e-10)
// so that O times its lines' factors has the norm of O. direction [r,c] or [B,r,c] f32 or bf16; second_moment
// and factors f32, of that shape but for an extent of 1 across the line. Sums run in f64, in a fixed order.
struct NormuonFactors {
  static constexpr const char* name = "normuon_factors";
  static constexpr const char* signature = "in direction, inout second_moment, out factors; beta2 scale";
  enum Argument : unsigned { direction, second_moment, factors };
  enum Attribute : unsigned { beta2, scale };

  static void check(const sdk::CallChecks& call);
  static std::size_t workspace_bytes(const sdk::CallChecks& call);
  static void run(const sdk::Launch& call);
};

// With lr_p = lr * lr_multiplier: p <- p (1 - lr_p * weight_decay * weight_decay_factor) - lr_p * scale * f *
// direction, f the factor of the element's line. direction and master of one shape, each f32 or bf16.
struct NormuonApply {
  static constexpr const char* name = "normuon_apply";
  static constexpr const char* signature =
      "in direction, in factors, inout master, in scalars; lr_multiplier weight_decay scale";
  enum Argument : unsigned { direction, factors, master, scalars };
  enum Attribute : unsigned { lr_multiplier, weight_decay, scale };

  static void check(const sdk::CallChecks& call);
  static void run(const sdk::Launch& call);
};

// The shape of second_moment and factors for a direction.
mlg_tensor line_shape(mlg_tensor direction);

// The same for the cuda backend (normuon_kernels.cu).
extern const mlg_kernel normuon_factors_cuda;
extern const mlg_kernel normuon_apply_cuda;

}  // namespace mulligan::optimizers
