// The MLP's activation and its derivative, in f32.
#pragma once

namespace mulligan::cpu {

// (u > 0 ? u : slope u)^2
inline float leaky_relu_squared(float u, float slope) {
  const float bent = u > 0 ? u : slope * u;
  return bent * bent;
}

// Its derivative; `below` = 2 slope^2.
inline float leaky_relu_squared_slope(float u, float below) {
  return u * (u > 0 ? 2.0f : below);
}

}  // namespace mulligan::cpu
