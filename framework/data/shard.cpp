#include "framework/data/shard.h"

#include <glob.h>

#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <set>

#include "framework/core/error.h"
#include "framework/core/file.h"

namespace mulligan {
namespace {

static_assert(std::endian::native == std::endian::little, "tokens are mapped as they are stored");

std::vector<std::string> expand(const std::string& pattern) {
  std::vector<std::string> names;
  if (std::error_code ignored; std::filesystem::is_directory(pattern, ignored)) {
    for (const auto& entry : std::filesystem::directory_iterator(pattern)) {
      if (entry.path().extension() == ".bin") names.push_back(entry.path().string());
    }
    return names;
  }
  glob_t matches{};
  if (::glob(pattern.c_str(), 0, nullptr, &matches) == 0) {
    names.assign(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
  }
  ::globfree(&matches);
  return names;
}

}  // namespace

Shard::Shard(const std::filesystem::path& path) : path_(path), file_(path) {
  const std::span<const std::byte> bytes = file_.bytes();
  if (bytes.size() < kShardHeaderBytes) {
    throw data_error(
        "shard '{}' is truncated: it has {} bytes, fewer than the {} of its header; copy it again",
        path.string(), bytes.size(), kShardHeaderBytes);
  }
  std::array<std::int32_t, 3> header{};
  std::memcpy(header.data(), bytes.data(), sizeof(header));
  const auto [magic, version, count] = header;
  if (magic != kShardMagic) {
    throw data_error("'{}' is not a token shard: it starts with {} where the magic number {} is expected",
                     path.string(), magic, kShardMagic);
  }
  if (version != kShardVersion) {
    throw data_error("shard '{}' has format version {}, but only version {} can be read", path.string(),
                     version, kShardVersion);
  }
  if (count <= 0) throw data_error("shard '{}' promises {} tokens; prepare it again", path.string(), count);
  const std::size_t expected = kShardHeaderBytes + static_cast<std::size_t>(count) * sizeof(std::uint16_t);
  if (bytes.size() != expected) {
    throw data_error(
        "shard '{}' is {}: its header promises {} tokens, that is {} bytes, but it has {}; copy it again",
        path.string(), bytes.size() < expected ? "truncated" : "corrupt", count, expected, bytes.size());
  }
  tokens_ = {reinterpret_cast<const std::uint16_t*>(bytes.data() + kShardHeaderBytes),
             static_cast<std::size_t>(count)};
}

void write_shard(const std::filesystem::path& path, std::span<const std::uint16_t> tokens) {
  if (tokens.empty() || tokens.size() > std::numeric_limits<std::int32_t>::max()) {
    throw run_error("cannot write shard '{}': {} tokens are outside 1..2^31-1", path.string(), tokens.size());
  }
  std::array<std::int32_t, 256> header{kShardMagic, kShardVersion, static_cast<std::int32_t>(tokens.size())};
  const std::array<std::string_view, 2> parts{
      std::string_view(reinterpret_cast<const char*>(header.data()), sizeof(header)),
      std::string_view(reinterpret_cast<const char*>(tokens.data()), tokens.size_bytes())};
  write_file_atomically(path, parts);
}

std::vector<std::filesystem::path> find_shards(const std::vector<std::string>& patterns) {
  std::set<std::string> names;
  for (const std::string& pattern : patterns) {
    const std::vector<std::string> found = expand(pattern);
    if (found.empty()) {
      throw data_error("no token shard matches '{}'; run 'mulligan prepare' or give the right folder",
                       pattern);
    }
    names.insert(found.begin(), found.end());
  }
  return {names.begin(), names.end()};
}

std::vector<std::uint16_t> read_tokens(const std::vector<std::filesystem::path>& files) {
  std::vector<std::uint16_t> tokens;
  for (const auto& file : files) {
    const Shard shard(file);
    tokens.insert(tokens.end(), shard.tokens().begin(), shard.tokens().end());
  }
  return tokens;
}

}  // namespace mulligan
