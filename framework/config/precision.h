// The number formats a user may ask for by name: compute dtype of the model (all), master dtype of a
// parameter and dtype of its gradient between ranks (fp32 and bf16).
#pragma once

#include "framework/config/words.h"

namespace mulligan {

enum class Precision { fp32, bf16, fp16 };
template <>
inline constexpr auto config_words<Precision> = std::array{"fp32", "bf16", "fp16"};

// How the projections' weights are stored where everything else computes in fp32 (docs/numerics/layercast.md).
enum class LayerCast { off, bf16, fp16 };
template <>
inline constexpr auto config_words<LayerCast> = std::array{"off", "bf16", "fp16"};

}  // namespace mulligan
