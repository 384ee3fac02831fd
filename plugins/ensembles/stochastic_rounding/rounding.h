// The rounding of a weight to a grid of 2^b - 1 steps, to nearest or by chance.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <mulligan/philox.hpp>

namespace mulligan::stochastic_rounding {

// Largest code: 15 for 5 bits.
inline int largest_code(int bits) {
  return (1 << (bits - 1)) - 1;
}

// max |w| / largest_code, held in fp32, of `count` weights; 0 where all are (or round to) 0.
inline float scale_of(const float* weights, std::int64_t count, int bits) {
  float largest = 0;
  for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(weights[i]));
  return largest / static_cast<float>(largest_code(bits));
}

// In units of the scale, exact enough that the fraction of 0.1 is that of 0.1: fp64. Within +-largest_code,
// which the scale's own rounding may overstep by a part in 2^24.
inline double units_of(float weight, float scale, int bits) {
  const double reach = largest_code(bits);
  return std::clamp(static_cast<double>(weight) / static_cast<double>(scale), -reach, reach);
}

// Ties to even.
inline float to_nearest(float weight, float scale, int bits) {
  if (!(scale > 0)) return 0;
  return scale * static_cast<float>(std::nearbyint(units_of(weight, scale, bits)));
}

// floor(u) + [draw / 2^32 < u - floor(u)], so that the mean over draws is u.
inline float by_chance(float weight, float scale, int bits, std::uint32_t draw) {
  if (!(scale > 0)) return 0;
  const double units = units_of(weight, scale, bits), below = std::floor(units);
  const bool up = std::ldexp(static_cast<double>(draw), -32) < units - below;
  return scale * static_cast<float>(below + (up ? 1.0 : 0.0));
}

// The 32 random bits of an element: a pure function of these four, so that a member can be made anew at any
// time and on any machine. Four neighbouring elements share a block of Philox.
class Draws {
 public:
  Draws(std::uint64_t seed, std::int64_t member, std::int64_t tensor)
      : key_(seed, static_cast<std::uint64_t>(member) << 32 | static_cast<std::uint64_t>(tensor)) {}
  std::uint32_t operator()(std::uint64_t element) {
    if (element / 4 != block_number_ || !made_) {
      block_number_ = element / 4;
      block_ = key_.block(block_number_);
      made_ = true;
    }
    return block_[element % 4];
  }

 private:
  sdk::PhiloxKey key_;
  std::uint64_t block_number_ = 0;
  std::array<std::uint32_t, 4> block_{};
  bool made_ = false;
};

}  // namespace mulligan::stochastic_rounding
