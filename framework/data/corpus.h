// The documents of a preparation: read, told apart by content, divided into training and validation, and
// ordered.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/data/prepare.h"
#include "framework/data/text_source.h"

namespace mulligan {

// The first 128 bits of a cleaned document's sha256: its identity, its side of the split and its place in the
// order.
struct Digest {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  auto operator<=>(const Digest&) const = default;
};

struct CorpusDocument {
  const TextSource* source = nullptr;
  std::size_t index = 0;  // in the source
  Digest digest;
  std::uint64_t bytes = 0;  // of cleaned text

  std::string text() const { return source->text(index); }
};

class Corpus {
 public:
  // Reads every document once to digest it. Throws as documented at prepare().
  explicit Corpus(const PrepareOptions& options);
  Corpus(const Corpus&) = delete;
  Corpus& operator=(const Corpus&) = delete;

  const std::vector<CorpusDocument>& train() const { return train_; }
  const std::vector<CorpusDocument>& validation() const { return validation_; }
  const std::string& split_rule() const { return split_rule_; }
  std::uint64_t duplicates_dropped() const { return duplicates_dropped_; }
  std::uint64_t empty_dropped() const { return empty_dropped_; }

 private:
  std::vector<CorpusDocument> catalogue(const TextSource& source, int threads);
  void split_by_digest(std::vector<CorpusDocument> documents, const PrepareOptions& options);
  void take_separate_inputs(std::vector<CorpusDocument> train, std::vector<CorpusDocument> validation);

  TextSource inputs_;
  TextSource validation_inputs_;
  std::vector<CorpusDocument> train_;
  std::vector<CorpusDocument> validation_;
  std::string split_rule_;
  std::uint64_t duplicates_dropped_ = 0;
  std::uint64_t empty_dropped_ = 0;
};

}  // namespace mulligan
