#include <algorithm>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/data/byte_count.h"
#include "framework/data/manifest.h"
#include "framework/data/shard.h"
#include "framework/data/side_table.h"
#include "framework/data/tokenizer.h"

namespace mulligan {
namespace {

// `found` is what the files hold.
void check_total(const std::filesystem::path& manifest, const std::string& what, std::uint64_t claimed,
                 std::uint64_t found) {
  if (claimed == found) return;
  throw data_error("'{}' says {} {}, but its files hold {}; prepare or download the data again",
                   manifest.string(), claimed, what, found);
}

// The totals of one side of the split, counted anew: pieces count plain text, and side tables the original text.
// Training text that was transformed has neither.
void check_split(const std::filesystem::path& file, const char* name, const SplitRecord& split,
                 const Manifest& manifest, const Tokenizer& tokenizer) {
  const bool transformed = !manifest.text.transform.empty();
  const ByteTable table = ByteTable::from_tokenizer(tokenizer);
  SplitRecord found;
  int previous = -1;
  bool tables = transformed;
  std::vector<std::filesystem::path> shards;
  for (const ShardRecord& record : split.shards) {
    shards.push_back(folder_of(file) / record.file);
    tables = tables || !record.bytes_file.empty();
    const std::vector<std::uint16_t> tokens = Shard(shards.back()).read_all();
    found.tokens += tokens.size();
    found.documents += static_cast<std::uint64_t>(std::ranges::count(tokens, manifest.bos_id));
    if (transformed) continue;
    found.bytes += table.count(tokens);
    // A document may go on in the next shard.
    if (previous >= 0) found.bytes += static_cast<std::uint64_t>(table.bytes(previous, tokens.front()));
    previous = tokens.back();
  }
  const auto check = [&](const char* what, std::uint64_t claimed, std::uint64_t counted) {
    check_total(file, fmt::format("{} {}", name, what), claimed, counted);
  };
  check("tokens", split.tokens, found.tokens);
  check("documents", split.documents, found.documents);
  if (!transformed) check("bytes", split.bytes, found.bytes);
  if (&split != &manifest.validation || !tables) return;
  const std::vector<std::uint16_t> tokens = read_tokens(shards);
  const SideTable counts = SideTable::load(find_side_tables("", shards), shards);
  require_fit(counts, tokens, manifest.bos_id);
  check("bytes of the original text", split.source_bytes, counts.count(tokens));
  if (!transformed) return;
  check("bytes", split.bytes, split.source_bytes);
  require_original_bytes(counts, tokens, manifest.bos_id, tokenizer,
                         TextSource({folder_of(file) / manifest.validation_text_file}));
}

void check_totals(const std::filesystem::path& file, const Manifest& manifest) {
  const std::filesystem::path folder = folder_of(file);
  const Tokenizer tokenizer = Tokenizer::load(folder / manifest.tokenizer_file);
  const auto count = [](int value) { return static_cast<std::uint64_t>(value); };
  check_total(file, "pieces in the vocabulary", count(manifest.vocabulary), count(tokenizer.vocab_size()));
  check_total(file, "as the BOS id", count(manifest.bos_id), count(tokenizer.bos_id()));
  check_split(file, "training", manifest.train, manifest, tokenizer);
  check_split(file, "validation", manifest.validation, manifest, tokenizer);
  if (!manifest.text.transform.empty()) return;
  check_total(file, "bytes of validation text", manifest.validation.bytes,
              std::filesystem::file_size(folder / manifest.validation_text_file));
}

}  // namespace

Manifest verify_manifest(const std::filesystem::path& path) {
  const Manifest manifest = load_manifest(path);
  const std::filesystem::path file = std::filesystem::is_directory(path) ? path / "manifest.json" : path;
  const std::filesystem::path folder = folder_of(file);
  for (const SplitRecord* split : {&manifest.train, &manifest.validation}) {
    for (const ShardRecord& record : split->shards) {
      const auto tokens = static_cast<std::uint64_t>(Shard(folder / record.file).token_count());
      check_total(file, "tokens of " + record.file, record.tokens, tokens);
    }
  }
  for (const auto& [name, sha256] : manifest.files())
    require_digest(folder / name, sha256_hex_of_file(folder / name), sha256);
  check_totals(file, manifest);
  return manifest;
}

}  // namespace mulligan
