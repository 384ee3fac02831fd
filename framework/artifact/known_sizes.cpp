#include "framework/artifact/known_sizes.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string>

#include "framework/artifact/compression.h"
#include "framework/core/error.h"
#include "framework/core/file.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

// One line: the key, the size, and the sha256 of both, so that no damaged number is taken for a size.
std::string entry_text(const std::string& key, std::uint64_t bytes) {
  const std::string said = fmt::format("{} {}", key, bytes);
  return fmt::format("{} {}\n", said, sha256_hex(said));
}

std::optional<std::uint64_t> read_entry(const fs::path& file, const std::string& key) {
  std::error_code unknown;
  if (!fs::is_regular_file(file, unknown)) return {};
  std::string text;
  try {
    text = read_file(file, kLargestDescription);
  } catch (const Error&) {
    return {};  // as good as none
  }
  std::uint64_t bytes = 0;
  if (text.size() <= key.size() + 1) return {};
  std::from_chars(text.data() + key.size() + 1, text.data() + text.size(), bytes);
  if (text != entry_text(key, bytes)) return {};
  return bytes;
}

}  // namespace

fs::path known_sizes_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    return fs::path(cache) / "mulligan" / "sizes";
  if (const char* home = std::getenv("HOME"); home && *home)
    return fs::path(home) / ".cache" / "mulligan" / "sizes";
  return {};
}

std::uint64_t compressed_size(Compression compression, std::string_view contents, const fs::path& folder) {
  if (folder.empty()) return compress(compression, contents).size();
  const std::string version = compressor_version(compression);
  const std::string key = sha256_hex(fmt::format("{} {}", version, sha256_hex(contents)));
  const fs::path file = folder / key;
  if (const std::optional<std::uint64_t> known = read_entry(file, key)) return *known;
  const std::uint64_t bytes = compress(compression, contents).size();
  try {
    write_file_atomically(file, entry_text(key, bytes));
  } catch (const Error&) {  // nothing depends on it but the time of the next command
  }
  return bytes;
}

}  // namespace mulligan
