#include "framework/eval/validation_bytes.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/parallel.h"
#include "framework/data/documents.h"
#include "framework/data/manifest.h"
#include "framework/data/original_documents.h"
#include "framework/data/tokenizer_fit.h"
#include "framework/eval/evaluate.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

// The tokenizer must be the one that made the shards, whatever a manifest says.
void require_own_tokenizer(const TokenizerFit& fit, const DataConfig& data) {
  if (fit.fits()) return;
  throw data_error(
      "data.tokenizer = '{}' did not make the validation shards '{}', so it cannot "
      "say how many bytes their tokens are: of {} stretches of 64 tokens {} are not "
      "what it makes of their text, and pieces with {:.1f} % of the bytes are not "
      "what it makes of theirs (the first: '{}'); name the tokenizer of the shards",
      data.tokenizer, data.validation, fit.stretches, fit.odd_stretches,
      fit.bytes == 0 ? 0 : 100 * static_cast<double>(fit.odd_bytes) / static_cast<double>(fit.bytes),
      fit.example.substr(0, 40));
}

std::string renamed_text(const TokenizerFit& fit, const DataConfig& data) {
  if (fit.ordered() || !data.validation_documents.empty()) return {};
  return fmt::format(
      "the pieces of data.tokenizer = '{}' are not in the order in which "
      "SentencePiece makes them, as if they had been renamed, and no original "
      "documents show that they spell the text (data.validation_documents)",
      data.tokenizer);
}

constexpr const char* no_originals =
    "bytes are counted by the shards' side tables, and there are no original documents to compare them with "
    "(data.validation_documents)";

fs::path originals_of(const ValidationSet& validation, const DataConfig& data) {
  return data.validation_documents.empty() ? original_documents(validation.files)
                                           : fs::path(data.validation_documents);
}

void refuse_tables_of_plain_text(const ValidationSet& validation, const DataConfig& data,
                                 const fs::path& table) {
  if (!has_plain_text(validation.files)) return;
  throw data_error(
      "'{}' is a byte side table, but the manifest next to '{}' says that its text is plain, and then the "
      "tokenizer's pieces count its bytes; {}",
      table.string(), validation.files.front().string(),
      data.validation_bytes.empty() ? "prepare the data again" : "leave out data.validation_bytes");
}

void use_tables(ValidationSet& validation, const DataConfig& data, const std::vector<fs::path>& tables) {
  const SideTable& table = validation.side_table.emplace(SideTable::load(tables, validation.files));
  require_fit(table, validation.tokens, validation.bos_id);
  const fs::path originals = originals_of(validation, data);
  if (originals.empty()) {
    require_near_decoded(table, validation.tokens, validation.bos_id, *validation.tokenizer);
    validation.byte_note = fmt::format(
        "{}; they are believed as long as they count no more than {:g} times "
        "the bytes that the tokens decode to, and {:g} times in a document",
        no_originals, kSetByteFactor, kDocumentByteFactor);
    return;
  }
  const TextSource source({originals});
  require_original_bytes(table, validation.tokens, validation.bos_id, *validation.tokenizer, source);
  require_encoded_originals(validation.tokens, validation.bos_id, *validation.tokenizer, table, source);
  validation.byte_note =
      fmt::format("bytes are counted by the shards' side tables, which agree with '{}' document by document",
                  originals.string());
}

// The validation text that the manifest next to the shards names; "" where there is none, or of several sets.
fs::path stated_text(const ValidationSet& validation) {
  const fs::path folder = validation.files.front().parent_path();
  const auto elsewhere = [&](const fs::path& file) { return file.parent_path() != folder; };
  if (std::ranges::any_of(validation.files, elsewhere)) return {};
  const std::optional<Manifest> manifest = find_manifest(folder.empty() ? "." : folder);
  if (!manifest || manifest->validation_text_file.empty()) return {};
  const fs::path text = folder / manifest->validation_text_file;
  std::error_code unknown;
  return fs::is_regular_file(text, unknown) ? text : fs::path();
}

std::string text_of_tokens(const ValidationSet& validation) {
  const std::span<const std::uint16_t> tokens = validation.tokens;
  const std::vector<Document> documents = find_documents(tokens, validation.bos_id);
  std::vector<std::string> texts(documents.size());
  parallel_for(documents.size(), 0, [&](std::size_t i) {
    auto ids = tokens.subspan(static_cast<std::size_t>(documents[i].start),
                              static_cast<std::size_t>(documents[i].length));
    texts[i] = validation.tokenizer->document_text(ids);
  });
  std::string text;
  for (const std::string& part : texts) text += part;
  return text;
}

}  // namespace

void choose_byte_counter(ValidationSet& validation, const DataConfig& data, std::int64_t vocabulary) {
  const std::vector<fs::path> tables = find_side_tables(data.validation_bytes, validation.files);
  if (!tables.empty()) refuse_tables_of_plain_text(validation, data, tables.front());
  const TokenizerFit fit = tokenizer_fit(read_file(data.tokenizer), validation.tokens);
  require_own_tokenizer(fit, data);
  const std::string renamed = renamed_text(fit, data);
  if (!renamed.empty()) validation.byte_note = "warning: " + renamed;
  if (!tables.empty()) return use_tables(validation, data, tables);
  if (!has_plain_text(validation.files))
    refuse_transform_symbols(*validation.tokenizer, validation.tokens, validation.files);
  validation.byte_table = ByteTable::from_tokenizer(*validation.tokenizer, static_cast<int>(vocabulary));
  if (data.validation_documents.empty()) return;
  require_encoded_originals(validation.tokens, validation.bos_id, *validation.tokenizer,
                            *validation.byte_table, TextSource({data.validation_documents}));
}

std::string unproven_bytes(const ValidationSet& validation, const DataConfig& data) {
  if (!validation.tokenizer) return {};
  if (validation.side_table) {
    if (originals_of(validation, data).empty()) return no_originals;
    // Characters that the tokenizer reads nothing of stand in the originals, but no token had to be told.
    try {
      require_near_decoded(*validation.side_table, validation.tokens, validation.bos_id,
                           *validation.tokenizer);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }
  if (!data.validation_documents.empty()) return {};  // which were encoded again when the shards were opened
  const fs::path text = stated_text(validation);
  if (text.empty()) {
    return fmt::format(
        "nothing but the pieces of data.tokenizer = '{}' says what text the shards '{}' are "
        "of, and who changes letters in them changes its bytes: there is no manifest with a "
        "text next to the shards, and no original documents are named (data.validation_documents)",
        data.tokenizer, data.validation);
  }
  if (text_of_tokens(validation) != read_file(text))
    return fmt::format("'{}' is not the text that the validation shards hold by data.tokenizer = '{}'",
                       text.string(), data.tokenizer);
  return {};
}

}  // namespace mulligan
