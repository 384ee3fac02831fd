// Codes of 2 to 8 bits side by side in bytes, without padding between them.
//
// Code i occupies the bits i * bits to (i + 1) * bits - 1 of the stream; bit b of the stream is bit b % 8 of
// byte b / 8 (little-endian, as the kernel add_codes reads it). Bits behind the last code are zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mulligan::task_vectors {

inline constexpr int fewest_bits = 2, most_bits = 8;

// ceil(count * bits / 8).
std::size_t packed_bytes(std::size_t count, int bits);

// Codes must be below 2^bits, and bits within 2 to 8 (std::logic_error).
std::vector<std::byte> pack_codes(std::span<const std::uint8_t> codes, int bits);

// The first `count` codes of `packed`, which must have packed_bytes(count, bits) bytes (std::logic_error).
std::vector<std::uint8_t> unpack_codes(std::span<const std::byte> packed, std::size_t count, int bits);

// Whether the bits behind the last code are zero, as pack_codes leaves them.
bool clean_padding(std::span<const std::byte> packed, std::size_t count, int bits);

}  // namespace mulligan::task_vectors
