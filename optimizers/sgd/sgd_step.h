// The update of one tensor by gradient descent with momentum.
#pragma once

#include <mulligan/cpu_kernel.hpp>

namespace mulligan::optimizers {

// With lr_p = lr * lr_multiplier and wd = weight_decay * weight_decay_factor, element by element, in f32:
//   decoupled: p <- p (1 - lr_p * wd);  coupled: g <- g + wd * p
//   with momentum_buffer: buf <- momentum * buf + g; d = nesterov ? g + momentum * buf : buf;  without: d = g
//   p <- p - lr_p * d
// The buffer starts at zero, so the first one is g. gradient, momentum_buffer f32; master f32 or bf16; one
// shape. scalars f32: see the enumerators. Independent of the number of threads.
struct SgdStep {
  static constexpr const char* name = "sgd_step";
  static constexpr const char* signature =
      "in gradient, inout master, inout? momentum_buffer, in scalars; "
      "lr_multiplier weight_decay decoupled nesterov";
  enum Argument : unsigned { gradient, master, momentum_buffer, scalars };
  enum Attribute : unsigned { lr_multiplier, weight_decay, decoupled, nesterov };
  enum Scalar : unsigned { lr, momentum, weight_decay_factor, scalar_count };

  static void check(sdk::CallChecks& call);
  static void run(const sdk::Launch& call);
};

// The same for the cuda backend (sgd_step.cu).
mlg_kernel sgd_step_cuda();

}  // namespace mulligan::optimizers
