// Schedule-free AdamW (Defazio, Yang, Mehta, Mishchenko, Khaled, Cutkosky 2024, "The Road Less Scheduled",
// arXiv:2405.15682, its AdamW variant), one tensor.
//
// The paper's three sequences, with gamma_t = lr_t * lr_multiplier * sqrt(1 - beta2^t) at update t (from 1):
//   y_t     = (1 - beta1) z_t + beta1 x_t                      where the gradient g_t is taken
//   v_t     = beta2 v_{t-1} + (1 - beta2) g_t^2
//   z_{t+1} = z_t - gamma_t (g_t / (sqrt(v_t) + eps) + weight_decay y_t)
//   x_{t+1} = (1 - c_t) x_t + c_t z_{t+1},                     c_t = gamma_t^2 / sum_{i <= t} gamma_i^2
// x is the average that is evaluated; x_1 = z_1 = y_1.
//
// Kept here: the master is y, and the state `offset` is d = z - y, which starts at zero. As z - x = d /
// beta1, one update with D = gamma_t (g / (sqrt(v) + eps) + weight_decay y) is
//   d <- (1 - c) (d - beta1 D);   y <- y + (d_before - d) - D;   and x = y - d (1 - beta1) / beta1.
#pragma once

#include <mulligan/fused_update.hpp>

namespace mulligan::optimizers {

// Numbers that change from step to step, in the f32 tensor `scalars`: lr_t * sqrt(1 - beta2^t), and the
// factor of the weight decay.
enum ScheduleFreeScalar : unsigned { free_rate, free_weight_decay_factor, free_scalar_count };

// c of the coming update, the same for all tensors of a group: weight_sum += rate^2; share = rate^2 /
// weight_sum (1 while all rates were 0). All f32 [1].
struct ScheduleFreeShare {
  static constexpr const char* name = "schedule_free_share";
  static constexpr const char* signature = "in scalars, inout weight_sum, out share";
  enum Argument : unsigned { scalars, weight_sum, share };

  static void check(const sdk::CallChecks& call);
  static void run(const sdk::Launch& call);
};

// The update of one tensor, in f32. gradient, offset, exp_avg_sq f32; master f32 or bf16; all of one shape.
// Independent of the number of threads. The gradient counts times gradient_scale, and an average and a copy are made
// (fused_update.hpp).
struct ScheduleFreeUpdate {
  static constexpr const char* name = "schedule_free_update";
  static constexpr const char* signature =
      "in gradient, inout master, inout offset, inout exp_avg_sq, in share, in scalars, in? gradient_scale, "
      "inout? average, out? copy; lr_multiplier weight_decay beta1 beta2 eps average_decay";
  enum Argument : unsigned {
    gradient,
    master,
    offset,
    exp_avg_sq,
    share,
    scalars,
    gradient_scale,
    average,
    copy
  };
  enum Attribute : unsigned { lr_multiplier, weight_decay, beta1, beta2, eps, average_decay };
  static constexpr sdk::FusedUpdate fused{master, gradient_scale, average, copy, average_decay};

  static void check(const sdk::CallChecks& call);
  static void run(const sdk::Launch& call);
};

// evaluation = master - ratio * offset, with ratio = (1 - beta1) / beta1: x from y and d. offset and
// evaluation f32; master f32 or bf16.
struct ScheduleFreeAverage {
  static constexpr const char* name = "schedule_free_average";
  static constexpr const char* signature = "in master, in offset, out evaluation; ratio";
  enum Argument : unsigned { master, offset, evaluation };
  enum Attribute : unsigned { ratio };

  static void check(const sdk::CallChecks& call);
  static void run(const sdk::Launch& call);
};

// The same for the cuda backend (schedule_free_step.cu).
extern const mlg_kernel schedule_free_share_cuda;
extern const mlg_kernel schedule_free_update_cuda;
extern const mlg_kernel schedule_free_average_cuda;

}  // namespace mulligan::optimizers
