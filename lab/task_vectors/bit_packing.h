// Codes of 2 to 8 bits side by side in bytes, as pack_integers lays them out, but without a sign.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "framework/artifact/artifact_layout.h"

namespace mulligan::task_vectors {

inline constexpr int fewest_bits = 2, most_bits = 8;

// Codes must be below 2^bits, and bits within 2 to 8 (std::logic_error).
std::vector<std::byte> pack_codes(std::span<const std::uint8_t> codes, int bits);

// The `count` codes of `packed`, which must have packed_bytes(count, bits) bytes (std::runtime_error).
std::vector<std::uint8_t> unpack_codes(std::span<const std::byte> packed, std::size_t count, int bits);

// Asymmetric quantisation of one tensor (TVQ, arXiv 2503.06921):
//   step = (max - min) / (2^bits - 1),  zero = round(-min / step),
//   code = clip(round(x / step) + zero, 0, 2^bits - 1),  x^ = step (code - zero),  |x - x^| <= step / 2.
// In f64 throughout. A tensor of one value v has no range: its grid is step = |v|, zero = -sign(v), and its codes are 0, so it
// is restored exactly. A range below about 2^-40 of the values counts as none. No code could tell such values apart, and the
// error is far below the last bit of an f32.

// Of every tensor; in files two f64.
struct Grid {
  double step = 0;  // >= 0, finite
  double zero = 0;  // a whole number; the code of the value 0, which may lie outside of the codes
  bool operator==(const Grid&) const = default;
};
inline constexpr std::size_t grid_bytes = 2 * sizeof(double);

// Whether fit_grid can make this grid; checks the grids of files.
bool sound(const Grid& grid);

// The grid of `values` for codes of `bits` bits. Values must be finite (std::logic_error).
Grid fit_grid(std::span<const double> values, int bits);

// The nearest codes, 0 to 2^bits - 1.
std::vector<std::uint8_t> quantise(std::span<const double> values, const Grid& grid, int bits);

// values[i] = f32(fma(step, code - zero, values[i])).
void add_codes(std::span<const std::uint8_t> codes, const Grid& grid, std::span<float> values);

}  // namespace mulligan::task_vectors
