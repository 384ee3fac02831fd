// The [noise] section: noise in the gradients of training, for experiments on what precision does.
#pragma once

#include <cstdint>

namespace mulligan {

// What is done to each element g of a gradient tensor of d elements; xi is standard normal.
enum class NoiseMode {
  off,
  bf16_round,       // g rounded to bf16, to the nearest, ties to even
  bf16_stochastic,  // g rounded to bf16, up or down with the probabilities that keep its mean
  relative,         // g + sigma g xi
  norm,             // g + sigma |g| / sqrt(d) xi, with |g| the norm of the tensor
  anneal,           // g + sqrt(sigma / (1 + t)^0.55) xi, t the updates done (Neelakantan et al. 2015)
};

// Whether before the gradient is clipped, so that the clip sees it, or after it; after the reduction.
enum class NoiseOrder { before_clip, after_clip };

// [noise]
struct NoiseConfig {
  NoiseMode mode = NoiseMode::off;
  double sigma = 0.00166;       // 0 = none; the default is the relative error of rounding to bf16
  double from_fraction = 0.0;   // share of the budget from which on it is added
  double until_fraction = 1.0;  // and up to which, exclusive; 1 = to the end
  NoiseOrder order = NoiseOrder::before_clip;
};

}  // namespace mulligan
