// Sums of float over a row, in a fixed number of partial sums that are added in a fixed order. So the result depends neither
// on threads nor on vectorisation. The rounding error grows with a 64th of the row's length.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

// Independent partial sums of a row: four 512-bit registers, enough to hide the latency of an addition.
inline constexpr int kLanes = 64;

// Sum of kLanes floats, folded in halves: lane i + lane i + 32, then + 16, + 8, ... It uses vector types, because compilers
// turn the last steps of a loop into scalar code.
[[gnu::always_inline]] inline float fold_lanes(const float* lanes) {
  using Floats16 [[gnu::vector_size(64)]] = float;
  using Floats8 [[gnu::vector_size(32)]] = float;
  using Floats4 [[gnu::vector_size(16)]] = float;
  Floats16 quarters[4];
  std::memcpy(quarters, lanes, sizeof quarters);
  const Floats16 low = (quarters[0] + quarters[2]) + (quarters[1] + quarters[3]);
  const Floats8 eight = __builtin_shufflevector(low, low, 0, 1, 2, 3, 4, 5, 6, 7) +
                        __builtin_shufflevector(low, low, 8, 9, 10, 11, 12, 13, 14, 15);
  const Floats4 four =
      __builtin_shufflevector(eight, eight, 0, 1, 2, 3) + __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
  const Floats4 two = four + __builtin_shufflevector(four, four, 2, 3, 2, 3);
  return two[0] + two[1];
}

// Sum over j in [0, count) of term(j), as kLanes partial sums folded in halves.
template <typename Term>
[[gnu::always_inline]] inline float lane_sum(std::int64_t count, Term&& term) {
  float lanes[kLanes] = {};
  const std::int64_t whole = count / kLanes * kLanes;
  for (std::int64_t j = 0; j < whole; j += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += term(j + lane);
  }
  for (std::int64_t j = whole; j < count; ++j) lanes[j - whole] += term(j);
  return fold_lanes(lanes);
}

// The sums of several terms at once: term(j) gives a std::array<float, N>.
template <std::size_t N, typename Term>
[[gnu::always_inline]] inline std::array<float, N> lane_sums(std::int64_t count, Term&& term) {
  float lanes[N][kLanes] = {};
  const std::int64_t whole = count / kLanes * kLanes;
  for (std::int64_t j = 0; j < whole; j += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const std::array<float, N> terms = term(j + lane);
      for (std::size_t n = 0; n < N; ++n) lanes[n][lane] += terms[n];
    }
  }
  for (std::int64_t j = whole; j < count; ++j) {
    const std::array<float, N> terms = term(j);
    for (std::size_t n = 0; n < N; ++n) lanes[n][j - whole] += terms[n];
  }
  std::array<float, N> sums;
  for (std::size_t n = 0; n < N; ++n) sums[n] = fold_lanes(lanes[n]);
  return sums;
}

}  // namespace mulligan::sdk

#pragma GCC visibility pop
