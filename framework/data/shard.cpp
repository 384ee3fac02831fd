#include "framework/data/shard.h"

#include <array>
#include <bit>
#include <limits>

#include "framework/core/error.h"
#include "framework/core/file.h"

namespace mulligan {

static_assert(std::endian::native == std::endian::little, "tokens are read as they are stored");

Shard::Shard(const std::filesystem::path& path) : file_(path) {
  const std::uint64_t size = file_.size();
  data_error_if(size < kShardHeaderBytes,
                "shard '{}' is truncated: it has {} bytes, fewer than the {} of its header; copy it again",
                path.string(), size, kShardHeaderBytes);
  std::array<std::int32_t, 3> header{};
  file_.read(0, std::as_writable_bytes(std::span(header)));
  const auto [magic, version, count] = header;
  data_error_if(magic != kShardMagic,
                "'{}' is not a token shard: it starts with {} where the magic number {} is expected",
                path.string(), magic, kShardMagic);
  data_error_if(version != kShardVersion, "shard '{}' has format version {}, but only version {} can be read",
                path.string(), version, kShardVersion);
  if (count <= 0) throw data_error("shard '{}' promises {} tokens; prepare it again", path.string(), count);
  const std::size_t expected = kShardHeaderBytes + static_cast<std::size_t>(count) * sizeof(std::uint16_t);
  data_error_if(
      size != expected,
      "shard '{}' is {}: its header promises {} tokens, that is {} bytes, but it has {}; copy it again",
      path.string(), size < expected ? "truncated" : "corrupt", count, expected, size);
  token_count_ = count;
}

void Shard::read(std::int64_t first, std::span<std::uint16_t> out) const {
  file_.read(kShardHeaderBytes + static_cast<std::uint64_t>(first) * sizeof(std::uint16_t),
             std::as_writable_bytes(out));
}

std::vector<std::uint16_t> Shard::read_all() const {
  std::vector<std::uint16_t> tokens(static_cast<std::size_t>(token_count_));
  read(0, tokens);
  return tokens;
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

std::vector<std::uint16_t> read_tokens(const std::vector<std::filesystem::path>& files) {
  std::vector<std::uint16_t> tokens;
  for (const auto& file : files) {
    const Shard shard(file);
    const std::size_t before = tokens.size();
    tokens.resize(before + static_cast<std::size_t>(shard.token_count()));
    shard.read(0, std::span(tokens).subspan(before));
  }
  return tokens;
}

}  // namespace mulligan
