// Orders of bytes that compress well, and integers at their true width.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mulligan {

// "BSHF", the stride as a byte, then the bytes at 0, s, 2s, ..., those at 1, s+1, ..., and so on: equal
// places of neighbouring elements come together. What is shorter than the stride stays as it is, without the
// mark. (The format of the record's script.) stride: 1 to 255.
std::string shuffle_bytes(std::string_view bytes, int stride);
// The reverse. Throws std::runtime_error with a reason that reads on from the name of what was read.
std::string unshuffle_bytes(std::string_view shuffled, int stride);

// Signed integers of `bits` bits (2 to 8) in two's complement, one after the other, the lowest bit first;
// the last byte is filled with zeros. A code must lie in [-2^(bits-1), 2^(bits-1)).
std::string pack_integers(std::span<const std::int8_t> codes, int bits);
std::uint64_t packed_bytes(std::uint64_t count, int bits);
// The reverse: `count` integers. Throws std::runtime_error like unshuffle_bytes when `packed`
// has another size.
std::vector<std::int8_t> unpack_integers(std::string_view packed, std::uint64_t count, int bits);

}  // namespace mulligan
