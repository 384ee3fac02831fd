#include "framework/step/loss_scaler.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "framework/core/error.h"
#include "framework/run/weights.h"

namespace mulligan {

LossScaler::LossScaler(const LossScaleConfig& config) : config_(config) {
  state_.scale = config.initial;
}

bool LossScaler::scales(const LossScaleConfig& config, const Phase& phase) {
  if (config.mode == LossScaleMode::automatic) return phase.compute_dtype == MLG_F16;
  return config.mode != LossScaleMode::off;
}

double LossScaler::scale(const Phase& phase) const {
  return scales(config_, phase) ? state_.scale : 1.0;
}

bool LossScaler::note(bool updated) {
  const bool fixed = config_.mode == LossScaleMode::constant;
  if (!updated) {
    if (fixed || state_.scale <= smallest) return false;
    state_.scale = std::max(smallest, state_.scale * config_.backoff);
    state_.clean_updates = 0;
    ++state_.skipped_updates;
    return true;
  }
  if (fixed || ++state_.clean_updates < config_.growth_every) return true;
  state_.scale = std::min(largest, state_.scale * config_.growth);
  state_.clean_updates = 0;
  return true;
}

void LossScaler::restore(const LossScaleState& state) {
  int exponent = 0;
  if (!(state.scale >= smallest && state.scale <= largest) || std::frexp(state.scale, &exponent) != 0.5) {
    throw data_error(
        "the checkpoint's loss scale is {}, and must be a power of two from {} to {}; use another one.",
        state.scale, smallest, largest);
  }
  const double constant = config_.initial;
  state_ = state;
  if (config_.mode == LossScaleMode::constant) state_.scale = constant;
}

std::string LossScaler::text() const {
  return fmt::format("loss scale {}, {} updates since it changed, {} skipped", state_.scale,
                     state_.clean_updates, state_.skipped_updates);
}

std::string first_non_finite(const TensorStore& store, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const DType dtype = store.type(name).dtype;
    if (dtype != MLG_F32 && dtype != MLG_BF16) continue;
    const auto finite = [](float value) { return std::isfinite(value); };
    if (!std::ranges::all_of(download_values(store, name), finite)) return name;
  }
  return {};
}

}  // namespace mulligan
