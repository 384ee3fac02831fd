#include "framework/data/side_table.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/sha256.h"
#include "framework/data/documents.h"
#include "framework/data/manifest.h"
#include "framework/data/shard.h"
#include "framework/data/text_transform.h"
#include "framework/data/transformed_encoding.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kShardMark = "_val_", kTableMark = "_val_bytes_";

// What the manifest next to a shard says of its table; nothing where there is no manifest of ours.
std::optional<fs::path> listed_table(const fs::path& shard, const std::optional<Manifest>& manifest) {
  if (!manifest) return std::nullopt;
  const auto& records = manifest->validation.shards;
  const auto record = std::ranges::find(records, shard.filename().string(), &ShardRecord::file);
  if (record == records.end() || record->bytes_file.empty()) return fs::path();
  const fs::path table = folder_of(shard) / record->bytes_file;
  const std::string digest = sha256_hex_of_file(table);
  if (digest != record->bytes_sha256) {
    throw data_error("'{}' has sha256 {} but the manifest next to it says {}; prepare or download it again",
                     table.string(), short_digest(digest), short_digest(record->bytes_sha256));
  }
  return table;
}

// By the published names: fineweb_val_bytes_000000.bin next to fineweb_val_000000.bin.
fs::path table_next_to(const fs::path& shard) {
  std::string name = shard.filename().string();
  const std::size_t mark = name.rfind(kShardMark);
  if (mark == std::string::npos) return {};
  name.replace(mark, kShardMark.size(), kTableMark);
  std::error_code failed;
  const fs::path table = folder_of(shard) / name;
  return fs::exists(table, failed) ? table : fs::path();
}

std::vector<fs::path> tables_of_shards(const std::vector<fs::path>& shards) {
  std::map<fs::path, std::optional<Manifest>> manifests;
  std::vector<fs::path> tables, without;
  for (const fs::path& shard : shards) {
    const fs::path folder = folder_of(shard);
    if (!manifests.contains(folder)) manifests[folder] = find_manifest(folder);
    const std::optional<fs::path> listed = listed_table(shard, manifests[folder]);
    const fs::path table = listed ? *listed : table_next_to(shard);
    (table.empty() ? without : tables).push_back(table.empty() ? shard : table);
  }
  if (!tables.empty() && !without.empty()) {
    throw data_error(
        "there is a byte side table for '{}', but none for '{}'; bring it back, or name all of them with "
        "data.validation_bytes",
        tables.front().filename().string(), without.front().string());
  }
  return tables;
}

}  // namespace

bool names_side_table(const fs::path& file) {
  return file.filename().string().find(kTableMark) != std::string::npos;
}

std::vector<fs::path> find_side_tables(const std::string& pattern, const std::vector<fs::path>& shards) {
  if (pattern.empty()) return tables_of_shards(shards);
  const std::vector<fs::path> tables = find_files(pattern, names_side_table);
  if (tables.empty()) {
    throw data_error(
        "data.validation_bytes = '{}' names no byte side table; give a folder that holds files such as "
        "fineweb_val_bytes_000000.bin, or a pattern for them",
        pattern);
  }
  if (tables.size() != shards.size()) {
    throw data_error(
        "data.validation_bytes = '{}' names {} byte side tables, but data.validation {} shards; name one for "
        "each",
        pattern, tables.size(), shards.size());
  }
  return tables;
}

bool has_plain_text(const std::vector<fs::path>& shards) {
  std::map<fs::path, bool> plain;
  for (const fs::path& shard : shards) {
    const fs::path folder = folder_of(shard);
    if (plain.contains(folder)) continue;
    const std::optional<Manifest> manifest = find_manifest(folder);
    plain[folder] = manifest && (!manifest->text || manifest->text->transform.empty());
  }
  return std::ranges::all_of(plain, [](const auto& folder) { return folder.second; });
}

StatedOriginal stated_original(const std::vector<fs::path>& shards) {
  StatedOriginal stated{.known = !shards.empty(), .in_tables = true, .kept = true};
  std::map<fs::path, std::optional<Manifest>> manifests;
  std::map<const SplitRecord*, std::size_t> sides;
  for (const fs::path& shard : shards) {
    const fs::path folder = folder_of(shard);
    if (!manifests.contains(folder)) manifests[folder] = find_manifest(folder);
    const std::optional<Manifest>& manifest = manifests[folder];
    if (!manifest || !manifest->text) return {};
    const std::string name = shard.filename().string();
    const auto lists = [&](const SplitRecord& side) {
      return std::ranges::find(side.shards, name, &ShardRecord::file) != side.shards.end();
    };
    const SplitRecord* side = lists(manifest->validation) ? &manifest->validation : &manifest->train;
    const auto record = std::ranges::find(side->shards, name, &ShardRecord::file);
    if (record == side->shards.end()) return {};
    ++sides[side];
    stated.in_tables = stated.in_tables && !record->bytes_file.empty();
    stated.kept = stated.kept && side->source_bytes == side->bytes &&
                  manifest->text->documents_changed_by_tokenizer + manifest->text->documents_cleaned == 0 &&
                  manifest->text->transform.empty();
  }
  for (const auto& [side, count] : sides) stated.bytes += side->source_bytes;
  stated.whole = sides.size() == 1 && sides.begin()->second == sides.begin()->first->shards.size();
  return stated;
}

fs::path original_documents(const std::vector<fs::path>& shards) {
  fs::path folder;
  for (const fs::path& shard : shards) {
    if (!folder.empty() && folder_of(shard) != folder) return {};
    folder = folder_of(shard);
  }
  const std::optional<Manifest> manifest = find_manifest(folder);
  if (!manifest || !manifest->text || manifest->text->transform.empty()) return {};
  if (manifest->validation.shards.size() != shards.size())
    return {};  // a part of them, which may begin anywhere
  const fs::path file = folder / manifest->validation_text_file;
  std::error_code failed;
  if (!fs::exists(file, failed)) return {};
  const std::string digest = sha256_hex_of_file(file);
  if (digest != manifest->validation_text_sha256) {
    throw data_error("'{}' has sha256 {} but the manifest next to it says {}; prepare or download it again",
                     file.string(), short_digest(digest), short_digest(manifest->validation_text_sha256));
  }
  return file;
}

void refuse_transform_symbols(const Tokenizer& tokenizer, std::span<const std::uint16_t> tokens,
                              const std::vector<fs::path>& shards) {
  for (const TextTransform* transform : text_transforms()) {
    if (!is_trained_for(tokenizer, *transform)) continue;
    std::vector<int> ids;
    for (const std::string& symbol : transform->symbols()) ids.push_back(tokenizer.find(symbol));
    std::uint64_t found = 0;
    for (const std::uint16_t token : tokens) found += std::ranges::find(ids, token) != ids.end() ? 1 : 0;
    if (found == 0) continue;
    throw data_error(
        "'{}' holds {} symbols of the text transform {}, which stand for no text, "
        "but by the tokenizer's pieces each would count {} bytes; name the shards' "
        "byte side tables (fineweb_val_bytes_*.bin) with data.validation_bytes",
        shards.front().string(), found, transform->name(), transform->symbols().front().size());
  }
}

void require_fit(const SideTable& table, std::span<const std::uint16_t> tokens, int bos_id) {
  static_cast<void>(table.count(tokens));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] != bos_id || table.bytes_at(tokens, i) == 0) continue;
    throw data_error(
        "the byte side tables count {} bytes for the BOS at token "
        "{}, which stands for no text; name the tables of these shards",
        table.bytes_at(tokens, i), i);
  }
}

void require_original_bytes(const SideTable& table, std::span<const std::uint16_t> tokens, int bos_id,
                            const Tokenizer& tokenizer, const TextSource& originals) {
  const std::vector<Document> documents = find_documents(tokens, bos_id);
  if (originals.size() < documents.size()) {
    throw data_error(
        "data.validation_documents holds {} documents, but the validation "
        "shards {}; give the originals of all of them, in their order",
        originals.size(), documents.size());
  }
  for (std::size_t i = 0; i < documents.size(); ++i) {
    // Its length counts the BOS of its successor, which has 0 bytes.
    std::uint64_t counted = 0;
    for (std::int64_t at = 0; at < documents[i].length; ++at)
      counted += static_cast<std::uint64_t>(
          table.bytes_at(tokens, static_cast<std::size_t>(documents[i].start + at)));
    const std::string text = originals.raw(i);
    const std::uint64_t expected = originals.read(i).source_bytes;
    if (counted == expected || counted == counted_bytes(tokenizer, text)) continue;
    throw data_error(
        "the byte side table counts {} bytes in validation document {}, its original {} has {}, so no "
        "bits per byte can be given; bring together shards, side tables and documents of one preparation",
        counted, i + 1, originals.name(i), expected);
  }
}

}  // namespace mulligan
