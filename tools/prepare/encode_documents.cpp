#include "tools/prepare/encode_documents.h"

#include <algorithm>
#include <cstdint>
#include <functional>
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
#include "tools/prepare/ablate.h"

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

// A document that is in memory.
struct DocumentEncoder::Encoded {
  std::string text;
  TextOrigin origin;                  // of the text, where bytes are counted
  std::vector<std::uint16_t> tokens;  // BOS first
  std::vector<std::uint16_t> bytes;   // of the original, likewise; empty where none are counted
  bool unwanted = false;              // to be left out
  std::uint64_t tokens_before = 0, bytes_before = 0;  // an ablation
  SymbolCounts taken{};
  bool changed = false;  // by it
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
std::vector<DocumentEncoder::Encoded> DocumentEncoder::encode_block(std::span<const CorpusDocument> documents,
                                                                    bool scored, OverlapMeter* meter) {
  std::vector<Encoded> block(documents.size());
  // Tokens may spell something else than the document as it was given.
  const bool counted =
      scored && (transform_ || !tokenizer_.keeps_text() || options_.text.clean || ablated_ != nullptr);
  parallel_for(block.size(), options_.threads, [&](std::size_t i) {
    Encoded& one = block[i];
    one.text = documents[i].text(counted ? &one.origin : nullptr);
    one.tokens = {static_cast<std::uint16_t>(tokenizer_.bos_id())};
    if (ablated_) ablate_one(one, documents[i], counted);
    if (transform_ || counted) encode_counted(one, documents[i], counted);
  });
  if (ablated_) note_ablation(block, documents);
  if (!transform_ && !counted) encode_plain(block, documents);
  if (meter) {
    parallel_for(block.size(), options_.threads,
                 [&](std::size_t i) { block[i].unwanted = meter->read(block[i].tokens); });
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

void DocumentEncoder::encode_counted(Encoded& one, const CorpusDocument& document, bool counted) const {
  if (transform_ && !is_utf8(one.text)) {
    throw data_error(
        "'{}' is not UTF-8, which the text transform {} needs; leave it out or clean it with --clean",
        document.name(), transform_->name());
  }
  const DocumentEncoding encoded = encode_document(
      tokenizer_, transform_, one.text, counted ? std::move(one.origin) : TextOrigin(one.text.size()));
  add_tokens(encoded.ids, document, one);
  if (counted) {
    try {
      one.bytes = original_counts(encoded);
    } catch (const Error& error) {
      throw data_error("'{}': {}", document.name(), error.what());
    }
    one.bytes.insert(one.bytes.begin(), 0);  // of the BOS
  }
  if (options_.advance) options_.advance(static_cast<double>(one.text.size()));
}

void DocumentEncoder::encode_plain(std::vector<Encoded>& block,
                                   std::span<const CorpusDocument> documents) const {
  struct Part {
    std::size_t document = 0;  // in the block
    std::string_view text;
    bool at_start = false;
    std::vector<int> ids;
  };
  std::vector<Part> parts;
  for (std::size_t i = 0; i < block.size(); ++i) {
    bool at_start = true;
    for (std::string_view rest = block[i].text; !rest.empty(); at_start = false) {
      const std::size_t length = tokenizer_.cut_after(rest, kPartBytes);
      parts.push_back({i, rest.substr(0, length), at_start, {}});
      rest.remove_prefix(length);
    }
  }
  parallel_for(parts.size(), options_.threads, [&](std::size_t i) {
    parts[i].ids = tokenizer_.encode_part(parts[i].text, parts[i].at_start);
    if (options_.advance) options_.advance(static_cast<double>(parts[i].text.size()));
  });
  for (const Part& part : parts) add_tokens(part.ids, documents[part.document], block[part.document]);
}

void DocumentEncoder::add_tokens(const std::vector<int>& ids, const CorpusDocument& document,
                                 Encoded& one) const {
  for (const int id : ids) {
    if (tokenizer_.is_textless(id)) {
      throw data_error(
          "tokenizer '{}' has no piece for some text of '{}', so its bytes could not be counted; use one "
          "trained with byte fallback",
          options_.tokenizer.string(), document.name());
    }
    one.tokens.push_back(static_cast<std::uint16_t>(id));
  }
}

void DocumentEncoder::ablate_one(Encoded& one, const CorpusDocument& document, bool counted) const {
  one.bytes_before = one.text.size();
  one.tokens_before = 1 + tokenizer_.encode(transform_ ? transform_->apply(one.text) : one.text).size();
  if (!options_.ablation.takes(document.name())) return;
  std::vector<std::uint64_t> ends;
  std::string ablated = ablate(one.text, options_.ablation, one.taken, counted ? &ends : nullptr);
  one.changed = ablated != one.text;
  one.text = std::move(ablated);
  if (counted) one.origin.change(std::move(ends), one.bytes_before);
}

void DocumentEncoder::note_ablation(const std::vector<Encoded>& block,
                                    std::span<const CorpusDocument> documents) {
  for (std::size_t i = 0; i < block.size(); ++i) {
    const Encoded& one = block[i];
    ablated_->bytes_before += one.bytes_before;
    ablated_->bytes_after += one.text.size();
    ablated_->tokens_before += one.tokens_before;
    std::uint64_t symbols = 0;
    for (std::size_t kind = 0; kind < symbol_class_count; ++kind) {
      symbols_[kind] += one.taken[kind];
      symbols += one.taken[kind];
    }
    if (!one.changed) continue;
    ++ablated_->documents;
    changes_.push_back({documents[i].name(), fmt::format("ablated ({}): {} symbols, {} bytes became {}",
                                                         word_of(options_.ablation.mode), symbols,
                                                         one.bytes_before, one.text.size())});
  }
}

SplitRecord DocumentEncoder::encode(const std::vector<CorpusDocument>& documents, const std::string& stem,
                                    std::string* text, AblatedSplit* ablated, OverlapMeter* meter) {
  ablated_ = ablated;
  const ByteTable table = ByteTable::from_tokenizer(tokenizer_);
  ShardWriter writer(folder_, stem, options_.tokens_per_shard);
  SplitRecord split;
  for (std::size_t first = 0; first < documents.size();) {
    const std::span<const CorpusDocument> some(&documents[first], block_size(documents, first));
    const std::vector<Encoded> block = encode_block(some, text != nullptr, meter);
    for (std::size_t i = 0; i < some.size(); ++i) {
      const Encoded& one = block[i];
      const auto note = [&](std::uint64_t& count, std::string change) {
        ++count;
        changes_.push_back({some[i].name(), std::move(change)});
      };
      if (one.unwanted) {
        note(record_.overlap_left_out, "left out: it holds a passage of the validation text, changed or not");
        continue;
      }
      if (one.tokens.size() == 1) {
        note(record_.unread_left_out, "left out: the tokenizer reads nothing of it");
        continue;
      }
      const std::string spelled = tokenizer_.document_text(one.tokens);
      if (original_text(transform_, spelled) != one.text) {
        note(record_.documents_changed_by_tokenizer,
             fmt::format("changed by the tokenizer's normalisation: {} bytes became {}", one.text.size(),
                         spelled.size()));
      }
      writer.add(one.tokens, one.bytes);
      ++split.documents;
      split.tokens += one.tokens.size();
      if (ablated_) ablated_->tokens_after += one.tokens.size();
      split.bytes += transform_ ? some[i].source_bytes : table.count(one.tokens);
      split.source_bytes += some[i].source_bytes;
      if (text) *text += transform_ ? original_line(one.text, some[i].source_bytes) : spelled;
    }
    first += some.size();
  }
  split.shards = writer.finish();
  return split;
}

namespace {

constexpr std::size_t most_lines = std::size_t{1} << 24;
constexpr std::size_t block_documents = 256;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

struct Counted {
  SymbolCounts symbols{};
  std::vector<std::size_t> templates;  // a hash for each line that is not blank
};

Counted count(const std::string& text, const AblationRules& rules) {
  Counted counted;
  static_cast<void>(ablate(text, rules, counted.symbols));
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    if (line.find_first_not_of(" \t\r") != line.npos)
      counted.templates.push_back(std::hash<std::string>()(line_template(line)));
    begin = end + 1;
  }
  return counted;
}

}  // namespace

std::string line_template(std::string_view line) {
  std::string text;
  for (std::size_t i = 0; i < line.size();) {
    if (is_digit(line[i])) {
      text += '0';
      while (i < line.size() && is_digit(line[i])) ++i;
    } else if (is_letter(line[i])) {
      text += 'x';
      while (i < line.size() && (is_letter(line[i]) || is_digit(line[i]))) ++i;
    } else {
      text += line[i++];
    }
  }
  return text;
}

SymbolRecord symbol_statistics(const std::vector<CorpusDocument>& documents, std::uint64_t tokens,
                               int threads) {
  AblationRules rules;
  rules.classes = parse_symbol_classes("latex,digits,operators,greek");
  SymbolCounts symbols{};
  std::vector<std::size_t> templates;
  for (std::size_t first = 0; first < documents.size(); first += block_documents) {
    std::vector<Counted> block(std::min(block_documents, documents.size() - first));
    parallel_for(block.size(), threads,
                 [&](std::size_t i) { block[i] = count(documents[first + i].text(), rules); });
    for (const Counted& one : block) {
      for (std::size_t kind = 0; kind < symbol_class_count; ++kind) symbols[kind] += one.symbols[kind];
      const std::size_t room = most_lines - templates.size();
      templates.insert(
          templates.end(), one.templates.begin(),
          one.templates.begin() + static_cast<std::ptrdiff_t>(std::min(room, one.templates.size())));
    }
  }
  SymbolRecord record;
  for (const SymbolClass kind : rules.classes) {
    record.per_1000_tokens[word_of(kind)] =
        tokens == 0 ? 0.0
                    : 1000.0 * static_cast<double>(symbols[static_cast<std::size_t>(kind)]) /
                          static_cast<double>(tokens);
  }
  record.lines = templates.size();
  std::ranges::sort(templates);
  record.templates = static_cast<std::uint64_t>(std::ranges::unique(templates).begin() - templates.begin());
  return record;
}

}  // namespace mulligan
