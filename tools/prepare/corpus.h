// The documents of a preparation: read, told apart by content, divided into training and
// validation, and ordered.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/data/text_source.h"
#include "tools/prepare/prepare.h"

namespace mulligan {

// The first 128 bits of a document's sha256: its identity, its side of the split and its place in the order.
struct Digest {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  auto operator<=>(const Digest&) const = default;
};

struct CorpusDocument {
  const TextSource* source = nullptr;
  std::size_t index = 0;  // in the source
  Digest digest;
  std::uint64_t bytes = 0;         // of the text that is used
  std::uint64_t source_bytes = 0;  // of the document as it was given; more only when it was cleaned

  std::string name() const { return source->name(index); }
  std::string text(TextOrigin* origin = nullptr) const { return source->text(index, origin); }
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
  // What else was left out or cleaned.
  const TextRecord& record() const { return record_; }
  // The same by name, in the order of the inputs.
  const std::vector<DocumentChange>& changes() const { return changes_; }
  // Files that hold JSON Lines and are not named so, those that look like JSON and were read whole, and those that are
  // no UTF-8.
  const std::vector<std::pair<std::filesystem::path, TextForm>>& remarks() const { return remarks_; }

 private:
  std::vector<CorpusDocument> catalogue(const TextSource& source, const PrepareOptions& options);
  void note_files(const TextSource& source);
  void split_by_digest(std::vector<CorpusDocument> documents, const PrepareOptions& options);
  // With `drop_shared` validation documents are left out of training, otherwise they are refused there.
  void take_separate_inputs(std::vector<CorpusDocument> train, std::vector<CorpusDocument> validation,
                            bool drop_shared);

  TextSource inputs_;
  TextSource validation_inputs_;
  std::vector<CorpusDocument> train_;
  std::vector<CorpusDocument> validation_;
  std::string split_rule_;
  std::uint64_t duplicates_dropped_ = 0;
  std::uint64_t empty_dropped_ = 0;
  TextRecord record_;
  std::vector<DocumentChange> changes_;
  std::vector<std::pair<std::filesystem::path, TextForm>> remarks_;
};

}  // namespace mulligan
