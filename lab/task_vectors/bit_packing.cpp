#include "lab/task_vectors/bit_packing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace mulligan::task_vectors {

std::vector<std::byte> pack_codes(std::span<const std::uint8_t> codes, int bits) {
  if (bits < fewest_bits || bits > most_bits) throw std::logic_error("packed codes have 2 to 8 bits");
  if (std::ranges::any_of(codes, [bits](std::uint8_t code) { return code >> bits != 0; }))
    throw std::logic_error("a code does not fit its bits");
  const std::string packed = pack_integers({reinterpret_cast<const char*>(codes.data()), codes.size()}, bits);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(packed));
  return {bytes.begin(), bytes.end()};
}

std::vector<std::uint8_t> unpack_codes(std::span<const std::byte> packed, std::size_t count, int bits) {
  const std::string_view bytes(reinterpret_cast<const char*>(packed.data()), packed.size());
  const unsigned mask = (1U << bits) - 1U;
  std::vector<std::uint8_t> codes;
  codes.reserve(count);
  for (const char code : unpack_integers(bytes, count, bits))
    codes.push_back(static_cast<std::uint8_t>(static_cast<unsigned>(code) & mask));
  return codes;
}

namespace {

// With more steps between 0 and the values than this, x / step would keep too few bits after its point.
constexpr double most_steps = 0x1p40;
// No step and no lowest value of f32 numbers' differences is as large.
constexpr double beyond_differences = 8.0 * std::numeric_limits<float>::max();

}  // namespace

bool sound(const Grid& grid) {
  return grid.step >= 0 && grid.step < beyond_differences && std::abs(grid.zero) <= most_steps + 256 &&
         grid.zero == std::nearbyint(grid.zero) && grid.step * std::abs(grid.zero) < beyond_differences;
}

Grid fit_grid(std::span<const double> values, int bits) {
  if (values.empty()) return {};
  double low = values.front(), high = low;
  for (const double value : values) {
    if (!std::isfinite(value)) throw std::logic_error("fit_grid: a value is not finite");
    low = std::min(low, value);
    high = std::max(high, value);
  }
  const double step = (high - low) / ((1 << bits) - 1);
  if (step * most_steps <= std::max(std::abs(low), std::abs(high))) {
    return {std::abs(low), low == 0 ? 0.0 : low > 0 ? -1.0 : 1.0};
  }
  return {step, std::round(-low / step)};
}

std::vector<std::uint8_t> quantise(std::span<const double> values, const Grid& grid, int bits) {
  std::vector<std::uint8_t> codes(values.size());
  if (grid.step == 0) return codes;  // all are 0
  const double highest = (1 << bits) - 1;
  for (std::size_t i = 0; i < values.size(); ++i) {
    codes[i] =
        static_cast<std::uint8_t>(std::clamp(std::round(values[i] / grid.step) + grid.zero, 0.0, highest));
  }
  return codes;
}

void add_codes(std::span<const std::uint8_t> codes, const Grid& grid, std::span<float> values) {
  for (std::size_t i = 0; i < codes.size(); ++i) {
    values[i] = static_cast<float>(
        std::fma(grid.step, static_cast<double>(codes[i]) - grid.zero, static_cast<double>(values[i])));
  }
}

}  // namespace mulligan::task_vectors
