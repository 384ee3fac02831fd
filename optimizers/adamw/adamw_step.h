// The AdamW update of one tensor.
#pragma once

#include <mulligan/fused_update.hpp>

namespace mulligan::optimizers {

// With lr_p = lr * lr_multiplier at update number t (from 1), element by element, in f32:
//   p <- p (1 - lr_p * weight_decay * weight_decay_factor)
//   m <- beta1 m + (1 - beta1) g
//   v <- beta2 v + (1 - beta2) g^2
//   p <- p - lr_p / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
// (Loshchilov & Hutter 2019, with the decay scaled by the scheduled rate as in PyTorch.) Where a schedule
// changes the momentum, beta1 is that of the step, in the bias correction too, as PyTorch's OneCycleLR has
// it. Without bias correction the plugin gives 1 for both corrections. gradient f32; master f32 or bf16; exp_avg (m) and exp_avg_sq (v) both f32 or both bf16; all of one
// shape. Without exp_avg, beta1 must be 0: then m is the gradient. scalars f32: see the enumerators. Independent of
// the number of threads.
// The gradient counts times gradient_scale, and an average and a copy are made (fused_update.hpp).
struct AdamwUpdate {
  static constexpr const char* name = "adamw_update";
  static constexpr const char* signature =
      "in gradient, inout master, inout? exp_avg, inout exp_avg_sq, in scalars, in? gradient_scale, "
      "inout? average, out? copy; lr_multiplier weight_decay beta2 eps average_decay";
  enum Argument : unsigned { gradient, master, exp_avg, exp_avg_sq, scalars, gradient_scale, average, copy };
  enum Attribute : unsigned { lr_multiplier, weight_decay, beta2, eps, average_decay };
  static constexpr sdk::FusedUpdate fused{master, gradient_scale, average, copy, average_decay};
  enum Scalar : unsigned {
    lr,
    bias_correction1,
    inverse_sqrt_bias_correction2,
    beta1,
    one_minus_beta1,
    weight_decay_factor,
    step_low,  // the update's number: its lower 16 bits, and the 16 above them
    step_high,
    scalar_count
  };
  static constexpr unsigned least_scalars = step_low;  // that this kernel reads

  static void check(const sdk::CallChecks& call);
  static void run(const sdk::Launch& call);
};

// AdamwUpdate with both moments in bf16, rounded stochastically: to one of the two neighbours, the upper one
// with the probability of the part that is cut off, so that small changes count on average. (To the nearest a
// second moment of beta2 = 0.999 never moves: a step changes it by less than half of the distance of its
// neighbours.) Element i draws number i + 2^32 t of the Philox stream `stream`, a whole number up to 2^53:
// the lower halves of its first word for m and of its second for v.
struct AdamwStochasticUpdate : AdamwUpdate {
  static constexpr const char* name = "adamw_stochastic_update";
  static constexpr const char* signature =
      "in gradient, inout master, inout? exp_avg, inout exp_avg_sq, in scalars, in? gradient_scale, "
      "inout? average, out? copy; lr_multiplier weight_decay beta2 eps average_decay stream";
  enum StreamAttribute : unsigned { stream = average_decay + 1 };
  static constexpr std::uint64_t purpose = 0x6164616D77;  // of the stream, with its number: "adamw"

  static void check(const sdk::CallChecks& call);
  static void run(const sdk::Launch& call);
};

// The same for the cuda backend (adamw_step.cu).
extern const mlg_kernel adamw_update_cuda;
extern const mlg_kernel adamw_stochastic_update_cuda;

}  // namespace mulligan::optimizers
