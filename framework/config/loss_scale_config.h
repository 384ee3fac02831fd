// The [loss_scale] section: a power of two that the loss is multiplied with before it is differentiated, and
// the gradients are divided by before anything reads them, so that small gradients are not lost in fp16.
#pragma once

#include <cstdint>

namespace mulligan {

enum class LossScaleMode {
  automatic,  // dynamic in phases that compute in fp16, none in others
  off,
  constant,  // `initial`, in all phases; a gradient that is not finite ends the run
  dynamic,   // in all phases; a gradient that is not finite skips the update and lowers the scale
};

// [loss_scale]; scale and factors are powers of two: a scale under which nothing overflows changes nothing.
struct LossScaleConfig {
  LossScaleMode mode = LossScaleMode::automatic;
  double initial = 65536.0;
  double growth = 2.0;               // factor on the scale
  std::int64_t growth_every = 2000;  // after so many updates without a skipped one
  double backoff = 0.5;              // factor on the scale where an update is skipped
};

}  // namespace mulligan
