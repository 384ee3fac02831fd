// A step of matrices that minds their norm: the part of the update along the weights, the update's size next to that
// of the weights, the norm after the step. Kernels' names: named_kernel.h.
#pragma once

#include <mulligan/cpu_kernel.hpp>
#include <mulligan/optimizer.hpp>

#include <string>

#include "optimizers/common/matrix_shape.h"

namespace mulligan::optimizers {

// How large an update is made next to the weights.
enum class UpdateFloor {
  off,
  matrix,  // at least floor_ratio times the weights' norm
  row,     // each row at least floor_ratio times the norm of its row of weights
  equal    // as large as the weights, larger or smaller
};
// The norm that a matrix has after the step.
enum class RadiusPin {
  off,          // what the step makes of it
  first_order,  // what the step makes of it to first order in the rate
  fixed         // that from before
};

// With W the master, e = lr * lr_multiplier, O = scale * direction, |.| the Frobenius norm, per matrix:
//   k = <O,W> / max(|W|^2, 1e-12); where k < 0 (the step leads outward): O -= (1 - outward) k W
//   O *= the factor of UpdateFloor `floor`, max(1, floor_ratio |W| / |O|) (rows: of their own norms; equal:
//        |W| / |O|), norms at least eps
//   target = first_order: max(n - e <O,W> / n, eps) with n = max(|W|, eps); fixed: |W|
//   W <- (W - e O) target / max(|W - e O|, eps)                 (RadiusPin `pin` off: W - e O)
//   elements whose O W was positive: W *= 1 - e cautious_decay weight_decay_factor
// direction [r,c] or [B,r,c] and master of that shape, each f32 or bf16; scalars: MatrixScalar (momentum.h). Sums
// run in f64, over rows and then over the rows' sums; elements are f32.
struct RadiusStep {
  static constexpr const char* name = "step";
  static constexpr const char* signature =
      "in direction, inout master, in scalars; "
      "lr_multiplier scale outward floor floor_ratio pin cautious_decay eps";
  enum Argument : unsigned { direction, master, scalars };
  enum Attribute : unsigned { lr_multiplier, scale, outward, floor, floor_ratio, pin, cautious_decay, eps };

  static void check(const sdk::CallChecks& call);
  static std::size_t workspace_bytes(const sdk::CallChecks& call);
  static void run(const sdk::Launch& call);
};

// What a plugin asks of the step.
struct RadiusSettings {
  double outward = 1.0;
  UpdateFloor floor = UpdateFloor::off;
  double floor_ratio = 0.0;
  RadiusPin pin = RadiusPin::off;
  double cautious_decay = 0.0;
  double eps = 1e-8;
};
// By the kernel of plugin `optimizer`.
void record_radius_step(sdk::Recorder& recorder, const std::string& optimizer,
                        const sdk::Parameter& parameter, sdk::Value direction, sdk::Value scalars,
                        const RadiusSettings& settings);

// The same for the cuda backend (radius_step.cu).
extern const mlg_kernel radius_step_cuda;

}  // namespace mulligan::optimizers
