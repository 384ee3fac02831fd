// Compressed sizes by contents, kept from one command to the next: compressing the code at the strongest
// setting takes many seconds, and it is the same code for every run of a sweep.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "framework/config/quantize_config.h"

namespace mulligan {

// Where users' caches live: $XDG_CACHE_HOME/mulligan/sizes, else ~/.cache/mulligan/sizes;
// empty without either.
std::filesystem::path known_sizes_folder();

// Bytes of `contents` as compress() makes them. A size is kept in `folder` under the sha256 of the contents
// and the compressor's version, and taken from there the next time; a damaged entry is computed anew, and an
// entry that cannot be written is left out. With an empty `folder` it is always computed. Throws as
// compress() does.
std::uint64_t compressed_size(Compression compression, std::string_view contents,
                              const std::filesystem::path& folder);

}  // namespace mulligan
