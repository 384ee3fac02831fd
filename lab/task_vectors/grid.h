// Asymmetric quantisation of one tensor (TVQ, arXiv 2503.06921):
//   step = (max - min) / (2^bits - 1),  zero = round(-min / step),
//   code = clip(round(x / step) + zero, 0, 2^bits - 1),  x^ = step (code - zero),  |x - x^| <= step / 2.
// In f64 throughout. A tensor of one value v has no range: its grid is step = |v|, zero = -sign(v), and its
// codes are 0, so that it comes back exactly. A range below about 2^-40 of the values counts as none: no code
// could tell them apart, and what is lost is far below the last bit of an f32.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mulligan::task_vectors {

// Of every tensor; in files two f64.
struct Grid {
  double step = 0;  // >= 0, finite
  double zero = 0;  // a whole number; the code of the value 0, which may lie outside of the codes
  bool operator==(const Grid&) const = default;
};
inline constexpr std::size_t grid_bytes = 2 * sizeof(double);

// Whether a grid is one that fit_grid makes: what a file says is checked with this.
bool sound(const Grid& grid);

// The grid of `values` for codes of `bits` bits. Values must be finite (std::logic_error).
Grid fit_grid(std::span<const double> values, int bits);

// The nearest codes, 0 to 2^bits - 1.
std::vector<std::uint8_t> quantise(std::span<const double> values, const Grid& grid, int bits);

// values[i] = f32(fma(step, code - zero, values[i])): the bits of the kernel add_codes.
void add_codes(std::span<const std::uint8_t> codes, const Grid& grid, std::span<float> values);

}  // namespace mulligan::task_vectors
