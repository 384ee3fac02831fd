// Loops shared by the kernels that work on rows or on single elements.
//
// Results never depend on how rows are divided among threads: a row is always summed in the same kLanes
// partial sums, and element loops are cut at multiples of kElementBlock.
#pragma once

#include <cmath>
#include <cstdint>

#include "plugins/backends/cpu/cpu_kernel.h"

namespace mulligan::cpu {

// Independent partial sums of a row: two 512-bit registers, enough to hide the latency of an addition.
inline constexpr int kLanes = 32;

template <int Width>
[[gnu::always_inline]] inline void fold_lanes(float* lanes) {
  if constexpr (Width >= 1) {
    for (int lane = 0; lane < Width; ++lane) lanes[lane] += lanes[lane + Width];
    fold_lanes<Width / 2>(lanes);
  }
}

// Sum over j in [0, count) of term(j), as kLanes partial sums folded in halves.
template <typename Term>
[[gnu::always_inline]] inline float lane_sum(std::int64_t count, Term&& term) {
  float lanes[kLanes] = {};
  std::int64_t j = 0;
  for (; j + kLanes <= count; j += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += term(j + lane);
  }
  for (int lane = 0; j + lane < count; ++lane) lanes[lane] += term(j + lane);
  fold_lanes<kLanes / 2>(lanes);
  return lanes[0];
}

// row[j] = value(j), or row[j] += value(j) where `accumulate`. value(j) may read row[j] of an aliased input.
template <typename T, typename Value>
[[gnu::always_inline]] inline void write_row(T* row, std::int64_t count, bool accumulate, Value&& value) {
  if (accumulate) {
#pragma GCC ivdep
    for (std::int64_t j = 0; j < count; ++j) row[j] = T(static_cast<float>(row[j]) + value(j));
  } else {
#pragma GCC ivdep
    for (std::int64_t j = 0; j < count; ++j) row[j] = T(value(j));
  }
}

// 1 / sqrt(mean square + eps) of a row of `count` elements.
inline float reciprocal_rms(float sum_of_squares, std::int64_t count, float eps) {
  return 1.0f / std::sqrt(sum_of_squares / static_cast<float>(count) + eps);
}

// Rows of `width` elements that are worth a thread's while.
inline std::int64_t row_grain(std::int64_t width) {
  return std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, width));
}

// Floats of workspace for `count` values when another array follows: keeps 64-byte alignment.
inline std::int64_t aligned_floats(std::int64_t count) {
  return (count + 15) / 16 * 16;
}

inline constexpr std::int64_t kElementBlock = 4096;

// body(begin, end) over [0, count), cut at multiples of kElementBlock.
template <typename Body>
void for_elements(const Launch& launch, std::int64_t count, Body&& body) {
  launch.parallel_for((count + kElementBlock - 1) / kElementBlock, 4,
                      [&](std::int64_t first, std::int64_t last) {
                        body(first * kElementBlock, std::min(count, last * kElementBlock));
                      });
}

// Extent of the last axis, and the number of rows before it.
inline std::int64_t row_width(const Launch& launch, std::uint32_t argument) {
  const mlg_tensor& t = launch.tensor(argument);
  return t.shape[t.rank - 1];
}
inline std::int64_t row_count(const Launch& launch, std::uint32_t argument) {
  const std::int64_t width = row_width(launch, argument);
  return width == 0 ? 0 : launch.size(argument) / width;
}

}  // namespace mulligan::cpu
