#include "framework/data/side_table.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/parallel.h"
#include "framework/data/documents.h"
#include "framework/data/shard.h"
#include "framework/data/text_transform.h"
#include "framework/data/transformed_encoding.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

// The table that the manifest next to a shard lists; empty: none.
fs::path listed_table(const fs::path& shard, const Manifest& manifest) {
  const ShardRecord* record = manifest.validation.find(shard);
  if (!record || record->bytes_file.empty()) return {};
  const fs::path table = folder_of(shard) / record->bytes_file;
  require_digest(table, sha256_hex_of_file(table), record->bytes_sha256);
  return table;
}

std::vector<fs::path> tables_of_shards(const std::vector<fs::path>& shards) {
  NearManifests manifests;
  std::vector<fs::path> tables, without;
  for (const fs::path& shard : shards) {
    const Manifest* manifest = manifests.next_to(shard);
    const fs::path table = manifest ? listed_table(shard, *manifest) : side_table_next_to(shard);
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

std::vector<fs::path> find_side_tables(const std::string& pattern, const std::vector<fs::path>& shards) {
  if (pattern.empty()) return tables_of_shards(shards);
  const std::vector<fs::path> tables = find_files(pattern, names_side_table);
  data_error_if(
      tables.empty(),
      "data.validation_bytes = '{}' names no byte side table; give a folder that holds files such as "
      "fineweb_val_bytes_000000.bin, or a pattern for them",
      pattern);
  data_error_if(
      tables.size() != shards.size(),
      "data.validation_bytes = '{}' names {} byte side tables, but data.validation {} shards; name one for "
      "each",
      pattern, tables.size(), shards.size());
  return tables;
}

StatedOriginal stated_original(const std::vector<fs::path>& shards) {
  StatedOriginal stated{.known = !shards.empty(), .plain = true, .in_tables = true, .kept = true};
  NearManifests manifests;
  std::map<const SplitRecord*, std::size_t> sides;
  for (const fs::path& shard : shards) {
    const Manifest* manifest = manifests.next_to(shard);
    if (!manifest) return {};
    const SplitRecord* side = manifest->validation.find(shard) ? &manifest->validation : &manifest->train;
    const ShardRecord* record = side->find(shard);
    if (!record) return {};
    ++sides[side];
    const TextRecord& text = manifest->text;
    stated.plain = stated.plain && text.transform.empty();
    stated.in_tables = stated.in_tables && !record->bytes_file.empty();
    stated.kept = stated.kept && stated.plain && side->source_bytes == side->bytes &&
                  text.documents_changed_by_tokenizer + text.documents_cleaned == 0;
  }
  for (const auto& [side, count] : sides) stated.bytes += side->source_bytes;
  stated.whole = sides.size() == 1 && sides.begin()->second == sides.begin()->first->shards.size();
  return stated;
}

std::optional<Manifest> manifest_of(const std::vector<fs::path>& shards) {
  const fs::path folder = folder_of(shards.front());
  const auto elsewhere = [&](const fs::path& shard) { return folder_of(shard) != folder; };
  return std::ranges::any_of(shards, elsewhere) ? std::nullopt : find_manifest(folder);
}

fs::path original_documents(const std::vector<fs::path>& shards) {
  const std::optional<Manifest> manifest = manifest_of(shards);
  if (!manifest || manifest->text.transform.empty()) return {};
  if (manifest->validation.shards.size() != shards.size())
    return {};  // a part of them, which may begin anywhere
  const fs::path file = folder_of(shards.front()) / manifest->validation_text_file;
  std::error_code failed;
  if (!fs::exists(file, failed)) return {};
  require_digest(file, sha256_hex_of_file(file), manifest->validation_text_sha256);
  return file;
}

void refuse_transform_symbols(const Tokenizer& tokenizer, std::span<const std::uint16_t> tokens,
                              const std::vector<fs::path>& shards) {
  const TextTransform* transform = transform_of(tokenizer);
  if (transform == nullptr) return;
  std::vector<int> ids;
  for (const std::string& symbol : transform->symbols()) ids.push_back(tokenizer.find(symbol));
  const auto found =
      std::ranges::count_if(tokens, [&](int token) { return std::ranges::find(ids, token) != ids.end(); });
  data_error_if(found > 0,
                "'{}' holds {} symbols of the text transform {}, which stand for no text, "
                "but by the tokenizer's pieces each would count {} bytes; name the shards' "
                "byte side tables (fineweb_val_bytes_*.bin) with data.validation_bytes",
                shards.front().string(), found, transform->name(), transform->symbols().front().size());
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

namespace {

using TokenIds = std::span<const std::uint16_t>;

// A document's tokens with its BOS and without that of the next.
TokenIds tokens_of(TokenIds stream, const Document& document, int bos_id) {
  TokenIds ids =
      stream.subspan(static_cast<std::size_t>(document.start), static_cast<std::size_t>(document.length));
  if (ids.size() > 1 && ids.back() == bos_id) ids = ids.first(ids.size() - 1);
  return ids;
}

// All of the stream: what stands before the first BOS is scored like a document.
std::vector<Document> all_documents(TokenIds stream, int bos_id) {
  std::vector<Document> documents = find_documents(stream, bos_id);
  const std::int64_t first =
      documents.empty() ? static_cast<std::int64_t>(stream.size()) : documents.front().start;
  if (first > 0) documents.insert(documents.begin(), Document{0, first});
  return documents;
}

std::uint64_t decoded_bytes(const Tokenizer& tokenizer, const TextTransform* transform, TokenIds ids) {
  return original_text(transform, tokenizer.document_text(ids)).size();
}

std::uint64_t counted(const ByteCounter& bytes, TokenIds stream, const Document& document) {
  std::uint64_t sum = 0;
  for (std::int64_t at = std::max<std::int64_t>(document.start, 1); at < document.start + document.length;
       ++at)
    sum += static_cast<std::uint64_t>(bytes.bytes_at(stream, static_cast<std::size_t>(at)));
  return sum;
}

bool beyond_bound(std::uint64_t bytes, std::uint64_t decoded) {
  return static_cast<double>(bytes) > kDocumentByteFactor * static_cast<double>(decoded) + kSpareBytes;
}

void require_enough(const TextSource& originals, const std::vector<Document>& documents) {
  if (originals.size() >= documents.size()) return;
  throw data_error(
      "data.validation_documents holds {} documents, but the validation shards {}; give the originals of "
      "all of them, in their order",
      originals.size(), documents.size());
}

Error too_many(std::size_t document, std::uint64_t bytes, std::uint64_t decoded) {
  return data_error(
      "the bytes counted in validation document {} are {}, but its tokens decode to {}, and more than {:g} "
      "times that and {} are not believed; name byte side tables (data.validation_bytes) and documents "
      "(data.validation_documents) of these shards",
      document + 1, bytes, decoded, kDocumentByteFactor, kSpareBytes);
}

// Makes the counts of a document add up to `sum`: more goes to the last token, less is taken from the last ones.
void fit_sum(std::span<std::uint16_t> counts, std::uint64_t sum) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint16_t>::max();
  std::uint64_t now = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  for (auto count = counts.rbegin(); count != counts.rend() && now != sum; ++count) {
    const std::uint64_t others = now - *count;
    *count = static_cast<std::uint16_t>(sum > others ? std::min(sum - others, most) : 0);
    now = others + *count;
  }
}

}  // namespace

void require_near_decoded(const SideTable& table, TokenIds tokens, int bos_id, const Tokenizer& tokenizer) {
  const std::vector<Document> documents = all_documents(tokens, bos_id);
  const TextTransform* transform = transform_of(tokenizer);
  std::vector<std::uint64_t> bytes(documents.size()), decoded(documents.size());
  parallel_for(documents.size(), 0, [&](std::size_t i) {
    bytes[i] = counted(table, tokens, documents[i]);
    decoded[i] = decoded_bytes(tokenizer, transform, tokens_of(tokens, documents[i], bos_id));
  });
  for (std::size_t i = 0; i < documents.size(); ++i) {
    if (beyond_bound(bytes[i], decoded[i])) throw too_many(i, bytes[i], decoded[i]);
  }
  const auto sum = [](const auto& counts) {
    return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  };
  const std::uint64_t all = sum(bytes), text = sum(decoded);
  if (static_cast<double>(all) <= kSetByteFactor * static_cast<double>(text) + kSpareBytes) return;
  throw data_error(
      "the byte side tables count {} bytes in the validation set, but its tokens decode to {}, and more than "
      "{:g} times that is not believed without the original documents; name these with "
      "data.validation_documents, or the tables of these shards with data.validation_bytes",
      all, text, kSetByteFactor);
}

SideTable encode_originals(TokenIds tokens, int bos_id, const Tokenizer& tokenizer, const ByteCounter& bytes,
                           const TextSource& originals) {
  const std::vector<Document> documents = find_documents(tokens, bos_id);
  require_enough(originals, documents);
  std::vector<std::uint16_t> counts(tokens.size());
  for (std::size_t at = 1; at < tokens.size(); ++at)
    counts[at] = static_cast<std::uint16_t>(bytes.bytes_at(tokens, at));
  const TextTransform* transform = transform_of(tokenizer);
  std::vector<std::uint8_t> other(documents.size());
  parallel_for(documents.size(), 0, [&](std::size_t i) {
    const JsonLine line = originals.read(i);
    if (!line.problem.empty()) throw data_error("{}: {}", originals.name(i), line.problem);
    const DocumentEncoding encoding =
        encode_document(tokenizer, transform, line.text, TextOrigin({}, line.source_bytes));
    const TokenIds ids = tokens_of(tokens, documents[i], bos_id).subspan(1);
    const std::span<std::uint16_t> own =
        std::span(counts).subspan(static_cast<std::size_t>(documents[i].start) + 1, ids.size());
    const bool cut = i + 1 == documents.size() && ids.size() < encoding.ids.size();
    if (std::ranges::equal(ids, std::span(encoding.ids).first(cut ? ids.size() : encoding.ids.size()))) {
      const std::vector<std::uint16_t> found = original_counts(encoding);
      std::ranges::copy(std::span(found).first(own.size()), own.begin());
    } else {
      other[i] = 1;
      fit_sum(own, line.source_bytes);
    }
  });
  const auto first = static_cast<std::size_t>(std::ranges::find(other, 1) - other.begin());
  const auto count = static_cast<std::size_t>(std::ranges::count(other, 1));
  if (count * 100 > documents.size()) {
    throw data_error(
        "the original of validation document {}, {}, is not what its tokens say, and so it is with {} of {} "
        "documents; bring together shards, tokenizer and documents of one preparation",
        first + 1, originals.name(first), count, documents.size());
  }
  SideTable table(std::move(counts));
  for (std::size_t i = first; i < documents.size(); ++i) {
    if (other[i] == 0) continue;
    const std::uint64_t sum = counted(table, tokens, documents[i]);
    const std::uint64_t decoded =
        decoded_bytes(tokenizer, transform, tokens_of(tokens, documents[i], bos_id));
    if (beyond_bound(sum, decoded)) throw too_many(i, sum, decoded);
  }
  return table;
}

void require_original_bytes(const SideTable& table, TokenIds tokens, int bos_id, const Tokenizer& tokenizer,
                            const TextSource& originals) {
  const std::vector<Document> documents = find_documents(tokens, bos_id);
  require_enough(originals, documents);
  for (std::size_t i = 0; i < documents.size(); ++i) {
    // Its length counts the BOS of its successor, which has 0 bytes.
    const std::uint64_t bytes = counted(table, tokens, documents[i]);
    const std::uint64_t expected = originals.read(i).source_bytes;
    if (bytes == expected) continue;
    const std::string text = originals.raw(i);
    const TextOrigin origin(text.size());
    if (bytes == text.size() - encode_document(tokenizer, transform_of(tokenizer), text, origin).left_out)
      continue;
    throw data_error(
        "the byte side table counts {} bytes in validation document {}, its original {} has {}, so no "
        "bits per byte can be given; bring together shards, side tables and documents of one preparation",
        bytes, i + 1, originals.name(i), expected);
  }
}

}  // namespace mulligan
