// Token shards in the published format: 256 little-endian int32 (magic 20240520, version 1, token count,
// zeros), then the tokens as little-endian uint16. A document starts at every BOS token.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "framework/core/mapped_file.h"

namespace mulligan {

inline constexpr std::int32_t kShardMagic = 20240520;
inline constexpr std::int32_t kShardVersion = 1;
inline constexpr std::size_t kShardHeaderBytes = 256 * sizeof(std::int32_t);
// Token ids are stored in 16 bits.
inline constexpr int kMaxVocabulary = 65536;

// One shard, mapped and checked. Move-only; tokens() stays valid as long as the object (or its move) lives.
class Shard {
 public:
  // Throws data_error, naming the file and the bytes or values expected and found, when the file is shorter
  // than its header, has another magic or version, promises no tokens, or does not hold exactly the tokens
  // promised.
  explicit Shard(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  std::span<const std::uint16_t> tokens() const { return tokens_; }

 private:
  std::filesystem::path path_;
  MappedFile file_;
  std::span<const std::uint16_t> tokens_;
};

// Writes one shard atomically. Throws run_error for no tokens, 2^31 tokens or more, or a disk error.
void write_shard(const std::filesystem::path& path, std::span<const std::uint16_t> tokens);

// The shard files meant by `patterns`, sorted by path, each once. A pattern is a file, a folder (its *.bin
// files) or a glob such as data/fineweb_train_*.bin. Throws data_error naming a pattern that matches nothing.
std::vector<std::filesystem::path> find_shards(const std::vector<std::string>& patterns);

// All tokens of the files, in the order given, in one array.
std::vector<std::uint16_t> read_tokens(const std::vector<std::filesystem::path>& files);

}  // namespace mulligan
