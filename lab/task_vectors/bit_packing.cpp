#include "lab/task_vectors/bit_packing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace mulligan::task_vectors {
namespace {

void require_bits(int bits) {
  if (bits < fewest_bits || bits > most_bits) throw std::logic_error("packed codes have 2 to 8 bits");
}

}  // namespace

std::size_t packed_bytes(std::size_t count, int bits) {
  require_bits(bits);
  // Whole groups of eight codes are `bits` bytes; count * bits might overflow.
  const auto width = static_cast<std::size_t>(bits);
  return count / 8 * width + (count % 8 * width + 7) / 8;
}

std::vector<std::byte> pack_codes(std::span<const std::uint8_t> codes, int bits) {
  std::vector<std::byte> packed(packed_bytes(codes.size(), bits));
  const auto width = static_cast<unsigned>(bits);
  unsigned pending = 0, held = 0;  // bits that do not fill a byte yet
  std::size_t at = 0;
  for (const std::uint8_t code : codes) {
    if (code >> width != 0) throw std::logic_error("a code does not fit its bits");
    pending |= static_cast<unsigned>(code) << held;
    held += width;
    if (held >= 8) {
      packed[at++] = static_cast<std::byte>(pending & 0xFFU);
      pending >>= 8;
      held -= 8;
    }
  }
  if (held > 0) packed[at] = static_cast<std::byte>(pending);
  return packed;
}

std::vector<std::uint8_t> unpack_codes(std::span<const std::byte> packed, std::size_t count, int bits) {
  if (packed.size() != packed_bytes(count, bits)) throw std::logic_error("packed codes of another length");
  const auto width = static_cast<unsigned>(bits);
  std::vector<std::uint8_t> codes(count);
  unsigned pending = 0, held = 0;
  std::size_t at = 0;
  for (std::uint8_t& code : codes) {
    if (held < width) {
      pending |= static_cast<unsigned>(packed[at++]) << held;
      held += 8;
    }
    code = static_cast<std::uint8_t>(pending & ((1U << width) - 1));
    pending >>= width;
    held -= width;
  }
  return codes;
}

bool clean_padding(std::span<const std::byte> packed, std::size_t count, int bits) {
  const std::size_t used = count % 8 * static_cast<std::size_t>(bits) % 8;  // bits of the last byte
  return used == 0 || packed.empty() || std::to_integer<unsigned>(packed.back()) >> used == 0;
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
