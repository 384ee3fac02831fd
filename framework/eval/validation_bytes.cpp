#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/parallel.h"
#include "framework/data/documents.h"
#include "framework/data/side_table.h"
#include "framework/data/tokenizer_fit.h"
#include "framework/data/transformed_encoding.h"
#include "framework/eval/evaluate.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

// The tokenizer must be the one that made the shards, whatever a manifest says.
void require_own_tokenizer(const TokenizerFit& fit, const DataConfig& data) {
  data_error_if(
      !fit.fits(),
      "data.tokenizer = '{}' did not make the validation shards '{}', so it cannot "
      "say how many bytes their tokens are: of {} stretches of 64 tokens {} are not "
      "what it makes of their text, and pieces with {:.1f} % of the bytes are not "
      "what it makes of theirs (the first: '{}'); name the tokenizer of the shards",
      data.tokenizer, data.validation, fit.stretches, fit.odd_stretches,
      fit.bytes == 0 ? 0 : 100 * static_cast<double>(fit.odd_bytes) / static_cast<double>(fit.bytes),
      fit.example.substr(0, 40));
}

constexpr const char* no_originals =
    "bytes are counted by the shards' side tables, and there are no original documents to compare them with "
    "(data.validation_documents)";

fs::path originals_of(const ValidationSet& validation, const DataConfig& data) {
  return data.validation_documents.empty() ? original_documents(validation.files)
                                           : fs::path(data.validation_documents);
}

void add_note(ValidationSet& validation, const std::string& note) {
  validation.byte_note += (validation.byte_note.empty() ? "" : "\n") + note;
}

void count_originals(ValidationSet& validation, const ByteCounter& bytes, const TextSource& originals) {
  validation.original_counter = std::make_shared<const SideTable>(
      encode_originals(validation.tokens, validation.bos_id, *validation.tokenizer, bytes, originals));
}

// Tables that published sets bring along, of transformed text or, without a manifest, of any.
void use_tables(ValidationSet& validation, const DataConfig& data, const std::vector<fs::path>& tables) {
  const bool transformed = transform_of(*validation.tokenizer) != nullptr;
  const auto loaded = std::make_shared<const SideTable>(SideTable::load(tables, validation.files));
  (transformed ? validation.tokenizer_counter : validation.original_counter) = loaded;
  const SideTable& table = *loaded;
  require_fit(table, validation.tokens, validation.bos_id);
  const fs::path originals = originals_of(validation, data);
  if (originals.empty()) {
    require_near_decoded(table, validation.tokens, validation.bos_id, *validation.tokenizer);
    add_note(validation, fmt::format("{}; they are believed as long as they count no more than {:g} times "
                                     "the bytes that the tokens decode to, and {:g} times in a document",
                                     no_originals, kSetByteFactor, kDocumentByteFactor));
    return;
  }
  const TextSource source({originals});
  require_original_bytes(table, validation.tokens, validation.bos_id, *validation.tokenizer, source);
  count_originals(validation, table, source);
  add_note(
      validation,
      fmt::format("bytes are counted by the shards' side tables, which agree with '{}' document by document",
                  originals.string()));
}

// Tables of plain text, which `prepare` writes where the tokens may spell another text than the original.
void use_listed_tables(ValidationSet& validation, const StatedOriginal& stated) {
  const auto table = std::make_shared<const SideTable>(
      SideTable::load(find_side_tables("", validation.files), validation.files));
  validation.original_counter = table;
  require_fit(*table, validation.tokens, validation.bos_id);
  const std::uint64_t bytes = table->count(validation.tokens);
  if (!stated.whole || bytes == stated.bytes) return;
  throw data_error(
      "the byte side tables next to '{}' count {} bytes, but the manifest says that the original text has {}; "
      "prepare the data again",
      validation.files.front().string(), bytes, stated.bytes);
}

// Whether the pieces spell the original, or what is known of it.
void judge_pieces(ValidationSet& validation, const StatedOriginal& stated) {
  const bool kept = stated.known ? stated.kept : validation.tokenizer->keeps_text();
  if (kept) validation.original_counter = validation.tokenizer_counter;
  if (kept || validation.asked_rule == ByteRule::tokenizer) return;
  add_note(
      validation,
      fmt::format(
          "warning: the tokenizer changes text, and nothing says how many bytes of the original each "
          "validation token stands for{}; bits per byte are of the text that the tokens spell "
          "(name the originals with data.validation_documents, or state that rule with data.byte_rule "
          "= \"tokenizer\")",
          stated.known && stated.whole && stated.bytes > 0 ? fmt::format(" (all of them: {})", stated.bytes)
                                                           : ""));
}

// The validation text that the manifest next to the shards names; "" where there is none, or of several sets.
fs::path stated_text(const ValidationSet& validation) {
  const std::optional<Manifest> manifest = manifest_of(validation.files);
  if (!manifest || manifest->validation_text_file.empty()) return {};
  const fs::path text = folder_of(validation.files.front()) / manifest->validation_text_file;
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
  validation.asked_rule = data.byte_rule;
  const std::vector<fs::path> tables = find_side_tables(data.validation_bytes, validation.files);
  const StatedOriginal stated = stated_original(validation.files);
  const bool listed = stated.plain && stated.in_tables && data.validation_bytes.empty();
  // Tables outside of the manifest do not give the bytes of text that the manifest calls plain.
  if (!tables.empty() && !listed && stated.plain) {
    throw data_error(
        "'{}' is a byte side table, but the manifest next to '{}' says that its text is plain, and then the "
        "tokenizer's pieces count its bytes; {}",
        tables.front().string(), validation.files.front().string(),
        data.validation_bytes.empty() ? "prepare the data again" : "leave out data.validation_bytes");
  }
  require_own_tokenizer(tokenizer_fit(read_file(data.tokenizer), validation.tokens), data);
  if (tables.empty() && !stated.plain)
    refuse_transform_symbols(*validation.tokenizer, validation.tokens, validation.files);
  validation.counts_pieces = tables.empty() || !transform_of(*validation.tokenizer);
  if (validation.counts_pieces) {
    validation.tokenizer_counter = std::make_shared<const ByteTable>(
        ByteTable::from_tokenizer(*validation.tokenizer, static_cast<int>(vocabulary)));
  }
  if (!tables.empty() && !listed) {
    use_tables(validation, data, tables);
  } else if (!data.validation_documents.empty()) {
    count_originals(validation, *validation.tokenizer_counter, TextSource({data.validation_documents}));
  } else if (listed) {
    use_listed_tables(validation, stated);
  } else {
    judge_pieces(validation, stated);
  }
}

std::string unproven_bytes(const ValidationSet& validation, const DataConfig& data) {
  if (!validation.tokenizer) return {};
  if (!data.validation_documents.empty()) return {};  // which were encoded again when the shards were opened
  if (!validation.counts_pieces) return originals_of(validation, data).empty() ? no_originals : "";
  if (validation.byte_rule() == ByteRule::original &&
      validation.original_counter != validation.tokenizer_counter &&
      !stated_original(validation.files).in_tables)
    return no_originals;
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
  if (validation.byte_rule() == validation.asked_rule) return {};
  return fmt::format(
      "the tokenizer changes text, and the manifest next to '{}' does not say how many bytes of the original each "
      "token stands for: prepare the data again, or state with data.byte_rule = \"tokenizer\" that the contest "
      "counts the text as its tokenizer changes it",
      validation.files.front().string());
}

}  // namespace mulligan
