// A number that tells a damaged file from a whole one, and names files. Equal numbers do not mean equal text.
#pragma once

#include <cstdint>
#include <string_view>

namespace mulligan::cuda {

// FNV-1a.
inline std::uint64_t fingerprint(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

}  // namespace mulligan::cuda
