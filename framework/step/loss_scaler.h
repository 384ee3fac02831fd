// LossScaler: what the loss is multiplied with before it is differentiated ([loss_scale]), how that changes.
//
// Dynamic: after growth_every updates in a row the scale grows; a gradient that is not finite costs an update
// and lowers it (Micikevicius et al., Mixed Precision Training, 2018, section 3.2).
#pragma once

#include <cstdint>
#include <optional>
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

// Which tensors of a run hold numbers that are not finite.
struct NonFinite {
  std::string tensor;        // the first of the names given
  std::int64_t element = 0;  // its first element that is not finite
  double value = 0;          // infinite or NaN
  std::size_t tensors = 0;   // how many of the names have one
};

// Looks through `names` (f32 or bf16; others are passed over) in order. Downloads them: for a run that stops.
std::optional<NonFinite> find_non_finite(const TensorStore& store, const std::vector<std::string>& names);

}  // namespace mulligan
