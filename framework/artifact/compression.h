// Lossless compression of byte strings: Brotli and zlib.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "framework/config/stored_formats.h"

namespace mulligan {

// At the strongest setting: Brotli quality 11 with a window of 16 MiB, zlib level 9.
// Depends on the bytes and the library's version only. Throws run_error when the library fails.
std::string compress(Compression compression, std::string_view bytes);

// The bytes that were compressed. `raw_bytes` is their number as the file declares it. Throws std::runtime_error
// with a reason ("is corrupt", "holds more than the 12 bytes declared") that reads on from the name of
// what was read.
std::string decompress(Compression compression, std::string_view compressed, std::uint64_t raw_bytes);

// The part of decompress() that an evaluation of other artifacts replaces.
std::string decompress_zlib(std::string_view compressed, std::uint64_t raw_bytes);

// The same for Brotli's bytes without a declared length. `most` limits the memory in use.
std::string decompress_brotli_within(std::string_view compressed, std::uint64_t most);

}  // namespace mulligan
