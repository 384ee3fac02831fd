#include "lab/task_vectors/bit_packing.h"

#include <stdexcept>

namespace mulligan::task_vectors {
namespace {

void require_bits(int bits) {
  if (bits < fewest_bits || bits > most_bits) throw std::logic_error("packed codes have 2 to 8 bits");
}

}  // namespace

std::size_t packed_bytes(std::size_t count, int bits) {
  require_bits(bits);
  // Whole groups of eight codes are `bits` bytes: the product of all of them might overflow.
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

}  // namespace mulligan::task_vectors
