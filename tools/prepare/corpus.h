// The documents of a preparation: read, told apart by content, divided into training and
// validation, and ordered.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/data/text_source.h"
#include "tools/prepare/prepare.h"

namespace mulligan {

struct CorpusDocument {
  const TextSource* source = nullptr;
  std::size_t index = 0;  // in the source
  // The first 15 bytes of the sha256 of the text that is used: its identity, its side of the split and its place in the
  // order.
  std::string digest;
  std::uint64_t bytes = 0;         // of the text that is used
  std::uint64_t source_bytes = 0;  // of the document as it was given; more only when it was cleaned

  std::string name() const { return source->name(index); }
  std::string text(TextOrigin* origin = nullptr) const { return source->text(index, origin); }
};

// Its texts are read again from the inputs, so it stays in its place.
class Corpus {
 public:
  // Reads every document once to digest it. Throws as documented at prepare().
  explicit Corpus(const PrepareOptions& options);
  Corpus(const Corpus&) = delete;
  Corpus& operator=(const Corpus&) = delete;

  std::vector<CorpusDocument> train, validation;
  Manifest manifest;  // how documents were read and divided, and what was left out or cleaned
  // The same by name, in the order of the inputs.
  std::vector<DocumentChange> changes;
  // Files that hold JSON Lines and are not named so, those that look like JSON and were read whole, and those that are
  // no UTF-8.
  std::vector<std::pair<std::filesystem::path, TextForm>> remarks;

 private:
  std::vector<CorpusDocument> catalogue(const TextSource& source, const PrepareOptions& options);
  void note_files(const TextSource& source);
  void split_by_digest(std::vector<CorpusDocument> documents, const PrepareOptions& options);
  // With `drop_shared` validation documents are left out of training, otherwise they are refused there.
  void take_separate_inputs(std::vector<CorpusDocument> training, std::vector<CorpusDocument> scored,
                            bool drop_shared);

  TextSource inputs_;
  TextSource validation_inputs_;
};

}  // namespace mulligan
