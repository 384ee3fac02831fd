// The update of one tensor by gradient descent with momentum.
#pragma once

#include <mulligan/fused_update.hpp>

namespace mulligan::optimizers {

// With lr_p = lr * lr_multiplier and wd = weight_decay * weight_decay_factor, element by element, in f32:
//   decoupled: p <- p (1 - lr_p * wd);  coupled: g <- g + wd * p
//   with momentum_buffer: buf <- momentum * buf + g; d = nesterov ? g + momentum * buf : buf;  without: d = g
//   p <- p - lr_p * d
// The buffer starts at zero, so the first one is g. gradient, momentum_buffer f32; master f32 or bf16; one
// shape. scalars f32: see the enumerators. Independent of the number of threads.
// The gradient counts times gradient_scale, and an average and a copy are made (fused_update.hpp).
struct SgdUpdate {
  static constexpr const char* name = "sgd_update";
  static constexpr const char* signature =
      "in gradient, inout master, inout? momentum_buffer, in scalars, in? gradient_scale, inout? average, "
      "out? copy; lr_multiplier weight_decay decoupled nesterov average_decay";
  enum Argument : unsigned { gradient, master, momentum_buffer, scalars, gradient_scale, average, copy };
  enum Attribute : unsigned { lr_multiplier, weight_decay, decoupled, nesterov, average_decay };
  enum Scalar : unsigned { lr, momentum, weight_decay_factor, scalar_count };
  static constexpr sdk::FusedUpdate fused{master, gradient_scale, average, copy, average_decay};

  static void check(const sdk::CallChecks& call);
  static void run(const sdk::Launch& call);
};

// The same for the cuda backend (sgd_step.cu).
extern const mlg_kernel sgd_update_cuda;

}  // namespace mulligan::optimizers
