// Documents into token shards, and how much of their text is symbols.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/data/manifest.h"
#include "framework/data/text_overlap.h"
#include "framework/data/text_transform.h"
#include "framework/data/tokenizer.h"
#include "tools/prepare/corpus.h"
#include "tools/prepare/prepare.h"

namespace mulligan {

class DocumentEncoder {
 public:
  // Shards are written into `folder`. Adds documents whose tokens spell another text, and those left out, to `record`
  // and `changes`. All but the path must outlive this object.
  DocumentEncoder(const PrepareOptions& options, const Tokenizer& tokenizer, std::filesystem::path folder,
                  TextRecord& record, std::vector<DocumentChange>& changes);

  const SymbolCounts& symbols_taken() const { return symbols_; }

  // Writes the documents, in order, to STEM_%06d.bin. If `text` is given, they are to be scored: appends their text to
  // it, as the tokens spell it, or with a text transform the originals as JSON Lines; and where tokens may spell
  // another text than the documents as they were given, writes the side tables STEM_bytes_%06d.bin. Works by blocks,
  // in parallel, long documents in parts. If `ablated` is given, documents are ablated before they are encoded
  // (PrepareOptions::ablation), which it records. If `meter` is given, documents that it finds are left out. Throws data_error for
  // a tokenizer that has no piece for some text.
  SplitRecord encode(const std::vector<CorpusDocument>& documents, const std::string& stem, std::string* text,
                     AblatedSplit* ablated, OverlapMeter* meter = nullptr);

 private:
  struct Encoded;
  std::vector<Encoded> encode_block(std::span<const CorpusDocument> documents, bool scored,
                                    OverlapMeter* meter);
  void ablate_one(Encoded& one, const CorpusDocument& document, bool counted) const;
  void note_ablation(const std::vector<Encoded>& block, std::span<const CorpusDocument> documents);
  void add_tokens(const std::vector<int>& ids, const CorpusDocument& document, Encoded& one) const;
  void encode_plain(std::vector<Encoded>& block, std::span<const CorpusDocument> documents) const;
  void encode_counted(Encoded& one, const CorpusDocument& document, bool counted) const;

  const PrepareOptions& options_;
  const Tokenizer& tokenizer_;
  const TextTransform* transform_;  // null: none
  std::filesystem::path folder_;
  TextRecord& record_;
  std::vector<DocumentChange>& changes_;
  AblatedSplit* ablated_ = nullptr;  // of the present split
  SymbolCounts symbols_{};
};

// The line with each run of digits as 0 and each identifier (letters, digits and _, not beginning with a
// digit; bytes beyond ASCII are letters) as x: "let v2 = 3.14;" is "x x = 0.0;".
std::string line_template(std::string_view line);

// Of the documents' text, which is `tokens` tokens: symbols of every class (ablate.h) per 1,000 tokens, and
// the lines that are not blank with how many templates they have, of the first 2^24. Reads every document;
// works in parallel on `threads` threads (0: one per core), which change nothing.
SymbolRecord symbol_statistics(const std::vector<CorpusDocument>& documents, std::uint64_t tokens,
                               int threads);

}  // namespace mulligan
