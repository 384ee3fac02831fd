// What Muon does with an orthogonalised update; what comes before it is in optimizers/common/momentum.h.
#pragma once

#include <mulligan/fused_update.hpp>

namespace mulligan::optimizers {

// scalars: MatrixScalar (momentum.h). With lr_p = lr * lr_multiplier: p <- p (1 - lr_p * weight_decay * weight_decay_factor) - lr_p * scale *
// direction. direction and master of one shape, each f32 or bf16; f32 arithmetic.
// Makes an average and a copy of the new master (fused_update.hpp).
struct MuonUpdate {
  static constexpr const char* name = "muon_update";
  static constexpr const char* signature =
      "in direction, inout master, in scalars, inout? average, out? copy; "
      "lr_multiplier weight_decay scale average_decay";
  enum Argument : unsigned { direction, master, scalars, average, copy };
  enum Attribute : unsigned { lr_multiplier, weight_decay, scale, average_decay };
  static constexpr sdk::FusedUpdate fused{master, sdk::FusedUpdate::no_scale, average, copy, average_decay};

  static void check(const sdk::CallChecks& call);
  static void run(const sdk::Launch& call);
};

// The same for the cuda backend (muon_kernels.cu).
extern const mlg_kernel muon_update_cuda;

}  // namespace mulligan::optimizers
