// `mulligan prepare`: text documents into token shards, a tokenizer and a manifest.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "framework/data/manifest.h"

namespace mulligan {

struct PrepareOptions {
  // Folders (every regular file below is one document), text files, and JSONL files (one {"text": ...} per
  // line).
  std::vector<std::filesystem::path> inputs;
  // Validation documents of their own; must not share a document with `inputs`. Empty: divide `inputs`.
  std::vector<std::filesystem::path> validation_inputs;
  std::filesystem::path output;  // folder, made if missing; an earlier preparation in it is replaced

  // Division of `inputs`, by the sha256 of each cleaned document, so it depends on nothing else: a fraction
  // in (0, 1), or exactly so many documents when validation_documents > 0.
  double validation_fraction = 0.05;
  std::int64_t validation_documents = 0;

  std::filesystem::path
      tokenizer;          // a SentencePiece model to use; empty: train one on the training documents
  int vocab_size = 1024;  // of the trained tokenizer, exact
  std::int64_t tokenizer_bytes =
      16'000'000;  // at most about so much text is trained on, chosen by document digest

  std::int64_t tokens_per_shard = 100'000'000;
  bool shuffle = true;  // order documents by digest (a fixed random order); otherwise as given
  int threads = 0;      // 0: one per core
  std::string source;   // words for the manifest; empty: the inputs' names

  std::function<void(const std::string&)> progress;  // told one line per stage, if set
};

struct PrepareSummary {
  Manifest manifest;
  double read_seconds = 0;
  double tokenizer_seconds = 0;
  double encode_seconds = 0;
};

// Writes fineweb_train_%06d.bin, fineweb_val_%06d.bin, tokenizer.model, tokenizer.vocab, validation.txt and,
// last, manifest.json; each through a temporary name. Equal documents are kept once. A document is cut by a
// shard's end only when it is longer than a shard. The same inputs and options give the same bytes.
//
// Throws config_error for options out of range, and data_error for: no documents, an empty side of the split,
// a document in both inputs, a vocabulary the texts cannot fill or that 16 bits cannot hold, a tokenizer that
// maps text to unknown tokens, and bytes of the validation documents that differ between the two counting
// routes.
PrepareSummary prepare(const PrepareOptions& options);

}  // namespace mulligan
