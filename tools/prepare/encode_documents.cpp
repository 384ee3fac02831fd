#include "tools/prepare/encode_documents.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/parallel.h"
#include "framework/core/utf8.h"
#include "framework/data/byte_count.h"
#include "framework/data/shard.h"
#include "framework/data/transformed_encoding.h"

namespace mulligan {
namespace {

constexpr std::size_t kPartBytes = std::size_t{1} << 20;  // of a document that is encoded at once

// Collects whole documents into shards of a limited size.
class ShardWriter {
 public:
  ShardWriter(std::filesystem::path folder, std::string stem, std::int64_t tokens_per_shard)
      : folder_(std::move(folder)),
        stem_(std::move(stem)),
        limit_(static_cast<std::size_t>(tokens_per_shard)) {}

  // `bytes`: the side table's counts, one for each token; none: there is no side table.
  void add(std::span<const std::uint16_t> document, std::span<const std::uint16_t> bytes) {
    if (tokens_.size() + document.size() > limit_) flush();
    const auto take = [&](auto& from, std::vector<std::uint16_t>& to) {
      const auto part = from.first(std::min(limit_, from.size()));
      to.insert(to.end(), part.begin(), part.end());
      from = from.subspan(part.size());
    };
    while (!document.empty()) {
      take(document, tokens_);
      take(bytes, bytes_);
      if (!document.empty()) flush();
    }
  }

  std::vector<ShardRecord> finish() {
    flush();
    return std::move(records_);
  }

 private:
  void flush() {
    if (tokens_.empty()) return;
    const std::string name = fmt::format("{}_{:06d}.bin", stem_, records_.size());
    write_shard(folder_ / name, tokens_);
    ShardRecord record{name, tokens_.size(), sha256_hex_of_file(folder_ / name)};
    if (!bytes_.empty()) {
      record.bytes_file = fmt::format("{}_bytes_{:06d}.bin", stem_, records_.size());
      write_shard(folder_ / record.bytes_file, bytes_);
      record.bytes_sha256 = sha256_hex_of_file(folder_ / record.bytes_file);
    }
    records_.push_back(std::move(record));
    tokens_.clear();
    bytes_.clear();
  }

  std::filesystem::path folder_;
  std::string stem_;
  std::size_t limit_;
  std::vector<std::uint16_t> tokens_, bytes_;
  std::vector<ShardRecord> records_;
};

// The documents from `first` on that fit a block: at least one.
std::size_t block_size(const std::vector<CorpusDocument>& documents, std::size_t first) {
  constexpr std::size_t kDocuments = 512;
  constexpr std::uint64_t kBytes = std::uint64_t{32} << 20;
  std::uint64_t bytes = 0;
  std::size_t count = 0;
  while (first + count < documents.size() && count < kDocuments && bytes < kBytes) {
    bytes += documents[first + count++].bytes;
  }
  return count;
}

}  // namespace

// Documents whose texts are in memory together, and their tokens.
struct DocumentEncoder::Block {
  struct Part {
    std::size_t document = 0;  // in the block
    std::string_view text;
    bool at_start = false;
    std::vector<int> ids;
  };
  std::vector<std::string> texts;
  std::vector<Part> parts;                         // in order
  std::vector<std::vector<std::uint16_t>> tokens;  // per document, BOS first
  std::vector<char> unwanted;                      // per document: it is to be left out
  std::vector<std::vector<std::uint16_t>> bytes;   // of the originals, likewise; empty where none are counted
  std::vector<TextOrigin> origins;                 // of the texts, where bytes are counted
};

DocumentEncoder::DocumentEncoder(const PrepareOptions& options, const Tokenizer& tokenizer,
                                 std::filesystem::path folder, TextRecord& record,
                                 std::vector<DocumentChange>& changes)
    : options_(options),
      tokenizer_(tokenizer),
      transform_(options.transform.empty() ? nullptr : &text_transform(options.transform)),
      folder_(std::move(folder)),
      record_(record),
      changes_(changes) {}

// Reads and encodes documents in parallel, long ones in parts.
DocumentEncoder::Block DocumentEncoder::encode_block(std::span<const CorpusDocument> documents, bool scored) {
  Block block;
  block.texts.resize(documents.size());
  block.tokens.assign(documents.size(), {static_cast<std::uint16_t>(tokenizer_.bos_id())});
  if (scored && changes_text()) block.origins.resize(documents.size());
  parallel_for(documents.size(), options_.threads, [&](std::size_t i) {
    block.texts[i] = documents[i].text(block.origins.empty() ? nullptr : &block.origins[i]);
  });
  if (ablated_) ablate_block(block, documents);
  if (transform_ || !block.origins.empty()) {
    encode_counted(block, documents);
  } else {
    encode_plain(block, documents);
  }
  block.unwanted.resize(documents.size());
  if (unwanted_) {
    parallel_for(documents.size(), options_.threads,
                 [&](std::size_t i) { block.unwanted[i] = unwanted_(block.tokens[i]) ? 1 : 0; });
  }
  return block;
}

namespace {

// A line of validation.jsonl.
std::string original_line(const std::string& text, std::uint64_t source_bytes) {
  nlohmann::json line{{"text", text}};
  if (source_bytes != text.size()) line["source_bytes"] = source_bytes;
  return line.dump() + "\n";
}

}  // namespace

bool DocumentEncoder::changes_text() const {
  return transform_ || !tokenizer_.keeps_text() || options_.text.clean || ablated_;
}

void DocumentEncoder::encode_counted(Block& block, std::span<const CorpusDocument> documents) {
  if (!block.origins.empty()) block.bytes.resize(documents.size());
  parallel_for(documents.size(), options_.threads, [&](std::size_t i) {
    const std::string& text = block.texts[i];
    if (transform_ && !is_utf8(text)) {
      throw data_error(
          "'{}' is not UTF-8, which the text transform {} needs; leave it out or clean it with --clean",
          documents[i].name(), transform_->name());
    }
    const DocumentEncoding encoded = encode_document(tokenizer_, transform_, text);
    add_tokens(encoded.ids, documents[i], block.tokens[i]);
    if (!block.bytes.empty()) {
      try {
        block.bytes[i] = original_counts(encoded, text.size(), block.origins[i]);
      } catch (const Error& error) {
        throw data_error("'{}': {}", documents[i].name(), error.what());
      }
      block.bytes[i].insert(block.bytes[i].begin(), 0);  // of the BOS
    }
    if (options_.advance) options_.advance(static_cast<double>(text.size()));
  });
}

void DocumentEncoder::encode_plain(Block& block, std::span<const CorpusDocument> documents) {
  for (std::size_t i = 0; i < documents.size(); ++i) {
    bool at_start = true;
    for (std::string_view rest = block.texts[i]; !rest.empty(); at_start = false) {
      const std::size_t length = tokenizer_.cut_after(rest, kPartBytes);
      block.parts.push_back({i, rest.substr(0, length), at_start, {}});
      rest.remove_prefix(length);
    }
  }
  parallel_for(block.parts.size(), options_.threads, [&](std::size_t i) {
    Block::Part& part = block.parts[i];
    part.ids = tokenizer_.encode_part(part.text, part.at_start);
    if (options_.advance) options_.advance(static_cast<double>(part.text.size()));
  });
  for (const Block::Part& part : block.parts)
    add_tokens(part.ids, documents[part.document], block.tokens[part.document]);
}

void DocumentEncoder::add_tokens(const std::vector<int>& ids, const CorpusDocument& document,
                                 std::vector<std::uint16_t>& tokens) const {
  for (const int id : ids) {
    if (tokenizer_.is_textless(id)) {
      throw data_error(
          "tokenizer '{}' has no piece for some text of '{}', so its bytes could not be counted; use one "
          "trained with byte fallback",
          options_.tokenizer.string(), document.name());
    }
    tokens.push_back(static_cast<std::uint16_t>(id));
  }
}

void DocumentEncoder::ablate_block(Block& block, std::span<const CorpusDocument> documents) {
  std::vector<SymbolCounts> taken(documents.size());
  std::vector<std::string> ablated(documents.size());
  std::vector<std::uint64_t> tokens(documents.size());
  parallel_for(documents.size(), options_.threads, [&](std::size_t i) {
    const bool of_domain = options_.ablation.takes(documents[i].name());
    std::vector<std::uint64_t> ends;
    const bool traced = of_domain && !block.origins.empty();
    ablated[i] = of_domain ? ablate(block.texts[i], options_.ablation, taken[i], traced ? &ends : nullptr)
                           : block.texts[i];
    if (traced) block.origins[i].change(std::move(ends), block.texts[i].size());
    const std::string& text = block.texts[i];
    tokens[i] = 1 + tokenizer_.encode(transform_ ? transform_->apply(text) : text).size();  // with BOS
  });
  for (std::size_t i = 0; i < documents.size(); ++i) {
    ablated_->bytes_before += block.texts[i].size();
    ablated_->bytes_after += ablated[i].size();
    ablated_->tokens_before += tokens[i];
    std::uint64_t symbols = 0;
    for (std::size_t kind = 0; kind < symbol_class_count; ++kind) {
      symbols_[kind] += taken[i][kind];
      symbols += taken[i][kind];
    }
    if (ablated[i] != block.texts[i]) {
      ++ablated_->documents;
      changes_.push_back(
          {documents[i].name(), fmt::format("ablated ({}): {} symbols, {} bytes became {}",
                                            ablation_mode_name(options_.ablation.mode), symbols,
                                            block.texts[i].size(), ablated[i].size())});
    }
    block.texts[i] = std::move(ablated[i]);
  }
}

bool DocumentEncoder::spells(const std::string& spelled, const std::string& text) const {
  if (!transform_) return spelled == text;
  try {
    return transform_->undo(spelled) == text;
  } catch (const Error&) {  // normalisation has changed what a symbol stands in front of
    return false;
  }
}

SplitRecord DocumentEncoder::encode(const std::vector<CorpusDocument>& documents, const std::string& stem,
                                    std::string* text) {
  const ByteTable table = ByteTable::from_tokenizer(tokenizer_);
  ShardWriter writer(folder_, stem, options_.tokens_per_shard);
  SplitRecord split;
  for (std::size_t first = 0; first < documents.size();) {
    const std::span<const CorpusDocument> some(&documents[first], block_size(documents, first));
    const Block block = encode_block(some, text != nullptr);
    for (std::size_t i = 0; i < some.size(); ++i) {
      const auto note = [&](std::uint64_t& count, std::string change) {
        ++count;
        changes_.push_back({some[i].name(), std::move(change)});
      };
      const std::vector<std::uint16_t>& tokens = block.tokens[i];
      if (block.unwanted[i] != 0) {
        note(record_.overlap_left_out, "left out: " + reason_);
        continue;
      }
      if (tokens.size() == 1) {
        note(record_.unread_left_out, "left out: the tokenizer reads nothing of it");
        continue;
      }
      const std::uint64_t bytes = transform_ ? some[i].source_bytes : table.count(tokens);
      const std::string spelled = tokenizer_.document_text(tokens);
      if (!spells(spelled, block.texts[i])) {
        note(record_.documents_changed_by_tokenizer,
             fmt::format("changed by the tokenizer's normalisation: {} bytes became {}",
                         block.texts[i].size(), spelled.size()));
      }
      // Side tables are of what is scored.
      writer.add(tokens, block.bytes.empty() ? std::span<const std::uint16_t>() : block.bytes[i]);
      ++split.documents;
      split.tokens += tokens.size();
      if (ablated_) ablated_->tokens_after += tokens.size();
      split.bytes += bytes;
      split.source_bytes += some[i].source_bytes;
      if (text != nullptr && transform_) *text += original_line(block.texts[i], some[i].source_bytes);
      if (text != nullptr && !transform_) *text += spelled;
    }
    first += some.size();
  }
  split.shards = writer.finish();
  return split;
}

}  // namespace mulligan
