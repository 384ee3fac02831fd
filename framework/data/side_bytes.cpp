#include "framework/data/side_bytes.h"

#include <numeric>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/sha256.h"
#include "framework/data/shard.h"

namespace mulligan {
namespace {

constexpr std::string_view kShardMark = "_val_", kTableMark = "_val_bytes_";

}  // namespace

bool names_side_table(const std::filesystem::path& file) {
  return file.filename().string().find(kTableMark) != std::string::npos;
}

std::filesystem::path side_table_next_to(const std::filesystem::path& shard) {
  std::string name = shard.filename().string();
  const std::size_t mark = name.rfind(kShardMark);
  if (mark == std::string::npos) return {};
  name.replace(mark, kShardMark.size(), kTableMark);
  std::error_code failed;
  const std::filesystem::path table = folder_of(shard) / name;
  return std::filesystem::exists(table, failed) ? table : std::filesystem::path();
}

SideTable SideTable::load(const std::vector<std::filesystem::path>& tables,
                          const std::vector<std::filesystem::path>& shards) {
  std::vector<std::uint16_t> bytes;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const Shard table(tables[i]), shard(shards[i]);
    data_error_if(table.token_count() != shard.token_count(),
                  "the byte side table '{}' has {} counts, but its shard '{}' {} tokens; bring back the "
                  "table of that shard",
                  tables[i].string(), table.token_count(), shards[i].string(), shard.token_count());
    const std::vector<std::uint16_t> counts = table.read_all();
    bytes.insert(bytes.end(), counts.begin(), counts.end());
  }
  return SideTable(std::move(bytes));
}

std::string SideTable::sha256() const {
  Sha256 hash;
  hash.update("side table\n");
  hash.update(std::as_bytes(std::span(bytes_)));
  return hash.hex();
}

std::uint64_t SideTable::count(std::span<const std::uint16_t> tokens) const {
  data_error_if(tokens.size() > bytes_.size(),
                "the byte side table has {} counts, but there are {} tokens; name that of these shards",
                bytes_.size(), tokens.size());
  if (tokens.empty()) return 0;
  const auto begin = bytes_.begin() + 1;
  return std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(tokens.size() - 1), std::uint64_t{0});
}

}  // namespace mulligan
