// Token shards in the published format: 256 little-endian int32 (magic 20240520, version 1, token count,
// zeros), then the tokens as little-endian uint16. A document starts at every BOS token.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "framework/core/input_file.h"

namespace mulligan {

inline constexpr std::int32_t kShardMagic = 20240520;
inline constexpr std::int32_t kShardVersion = 1;
inline constexpr std::size_t kShardHeaderBytes = 256 * sizeof(std::int32_t);
// Token ids are stored in 16 bits.
inline constexpr int kMaxVocabulary = 65536;

// One shard, opened and its header checked. Move-only; const functions may be called from several threads.
class Shard {
 public:
  // Throws data_error, naming the file and the bytes or values expected and found, when the file is
  // shorter than its header, has another magic or version, promises no tokens, or does not hold exactly
  // the tokens promised.
  explicit Shard(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_.path(); }
  const InputFile& file() const { return file_; }
  std::int64_t token_count() const { return token_count_; }

  // Fills `out` with the tokens from `first` on. Precondition: they lie in the shard. Throws data_error when
  // the file has become shorter or the disk refuses.
  void read(std::int64_t first, std::span<std::uint16_t> out) const;
  std::vector<std::uint16_t> read_all() const;

 private:
  InputFile file_;
  std::int64_t token_count_ = 0;
};

// Writes one shard atomically. Throws run_error for no tokens, 2^31 tokens or more, or a disk error.
void write_shard(const std::filesystem::path& path, std::span<const std::uint16_t> tokens);

// The two sides of prepared data.
enum class DataSplit { train, validation };

// The shard files meant by `patterns`, sorted by path, each once. A pattern is a file, a glob such as
// data/fineweb_train_*.bin (a part of the path that is there under that very name is no pattern), or a folder: its
// *.bin files of `split`. Which those are says the manifest in the folder, and without one the names (*_train_*,
// *_val_*); names that say neither count for both. Byte side tables (side_table.h) are none, whatever a pattern matches. Throws
// data_error naming a pattern that matches nothing, or a file that its manifest misses.
std::vector<std::filesystem::path> find_shards(const std::vector<std::string>& patterns, DataSplit split);

// The files that a glob matches, or a folder's *.bin files, of which `wanted` is true; sorted by path.
std::vector<std::filesystem::path> find_files(const std::string& pattern,
                                              bool (*wanted)(const std::filesystem::path& file));

// All tokens of the files, in the order given, in one array.
std::vector<std::uint16_t> read_tokens(const std::vector<std::filesystem::path>& files);

}  // namespace mulligan
