// LossScaler: what the loss is multiplied with before it is differentiated ([loss_scale]), how that changes.
//
// Dynamic: after growth_every updates in a row the scale grows; a gradient that is not finite costs an update
// and lowers it (Micikevicius et al., Mixed Precision Training, 2018, section 3.2).
#pragma once

#include <cstdint>
#include <string>

#include "framework/config/run_config.h"

namespace mulligan {

class LossScaler {
 public:
  // All that a checkpoint keeps.
  struct State {
    double scale = 0;                // 0: the configuration's first one
    std::int64_t clean_updates = 0;  // in a row since the scale changed or an update was skipped
    std::int64_t skipped_updates = 0;
    bool operator==(const State&) const = default;
  };
  // Beyond these a scale helps nobody: at 1 it is a gradient that overflows, not its multiple.
  static constexpr double smallest = 1.0, largest = 0x1p32;

  explicit LossScaler(const LossScaleConfig& config);

  // Whether the gradients of a phase are scaled and looked at.
  static bool scales(const LossScaleConfig& config, const Phase& phase);
  // The scale of the coming step; 1 in a phase without.
  double scale(const Phase& phase) const;
  // Books a step of a scaled phase. False where it was not updated and no lower scale is left to try.
  bool note(bool updated);

  const State& state() const { return state_; }
  // Continues from a saved state. Throws data_error for a scale that no configuration leads to.
  void restore(const State& state);
  // "loss scale 65536, 12 updates since it changed, 3 skipped"
  std::string text() const;

 private:
  LossScaleConfig config_;
  State state_;
};

}  // namespace mulligan
