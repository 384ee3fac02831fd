// SideTable: the bytes of each token of a stream, from files next to the token shards (side_table.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/data/byte_count.h"

namespace mulligan {

// Whether a file's name is that of a byte side table, which no pattern for token shards means.
bool names_side_table(const std::filesystem::path& file);
// By the published names: fineweb_val_bytes_000000.bin next to fineweb_val_000000.bin; "": there is none.
std::filesystem::path side_table_next_to(const std::filesystem::path& shard);

class SideTable : public ByteCounter {
 public:
  // One count for each token of the stream.
  explicit SideTable(std::vector<std::uint16_t> bytes) : bytes_(std::move(bytes)) {}
  // Reads the tables of these token shards, in the same order. Throws data_error for a bad file and for one
  // that has another number of tokens than its shard.
  static SideTable load(const std::vector<std::filesystem::path>& tables,
                        const std::vector<std::filesystem::path>& shards);

  std::string sha256() const override;
  // Which token it is does not matter, its place does.
  int bytes_at(std::span<const std::uint16_t>, std::size_t position) const override {
    return bytes_[position];
  }
  // Throws data_error where the stream is longer than the table.
  std::uint64_t count(std::span<const std::uint16_t> tokens) const override;

 private:
  std::vector<std::uint16_t> bytes_;
};

}  // namespace mulligan
