// LossScaler: what the loss is multiplied with before it is differentiated ([loss_scale]), how that changes.
//
// Dynamic: after growth_every updates in a row the scale grows; a gradient that is not finite costs an update
// and lowers it (Micikevicius et al., Mixed Precision Training, 2018, section 3.2).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/checkpoint/manifest.h"
#include "framework/config/run_config.h"
#include "framework/graph/tensor_store.h"

namespace mulligan {

class LossScaler {
 public:
  // A scale beyond these limits does not help: at 1 it is a gradient that overflows, not its multiple.
  static constexpr double smallest = 1.0, largest = 0x1p32;

  explicit LossScaler(const LossScaleConfig& config);

  // Whether the gradients of a phase are scaled and looked at.
  static bool scales(const LossScaleConfig& config, const Phase& phase);
  // The scale of the coming step; 1 in a phase without.
  double scale(const Phase& phase) const;
  // Books a step of a scaled phase. False where it was not updated and no lower scale is left to try.
  bool note(bool updated);

  const LossScaleState& state() const { return state_; }
  // Continues from a saved state. Throws data_error for a scale that no configuration leads to.
  void restore(const LossScaleState& state);
  // "loss scale 65536, 12 updates since it changed, 3 skipped"
  std::string text() const;

 private:
  LossScaleConfig config_;
  LossScaleState state_;
};

// The first of the tensors `names` (f32 or bf16; others are passed over) with a number that is not finite; "": none.
// Downloads them: for a run that stops.
std::string first_non_finite(const TensorStore& store, const std::vector<std::string>& names);

}  // namespace mulligan
