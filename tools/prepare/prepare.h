// `mulligan prepare`: text documents into token shards, a tokenizer and a manifest.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "framework/data/manifest.h"
#include "framework/data/text_source.h"
#include "tools/prepare/ablate.h"

namespace mulligan {

struct PrepareOptions {
  std::vector<std::filesystem::path> inputs;
  // Validation documents of their own; must not share a document with `inputs`. Empty: divide `inputs`.
  std::vector<std::filesystem::path> validation_inputs;
  std::filesystem::path output;  // folder that does not exist or is empty
  bool overwrite = false;        // `output` may hold an earlier preparation, and nothing else: it is replaced
  TextRules text;
  std::string transform;  // text_transform.h; "": none
  // After the documents were divided and the tokenizer trained, so that neither depends on it.
  AblationRules ablation;
  bool symbol_statistics = false;  // Manifest::symbols; reads the training documents once more

  // Division of `inputs`, by the sha256 of each document: a fraction in (0, 1), or exactly so many documents if above 0.
  double validation_fraction = 0.05;
  std::int64_t validation_documents = 0;

  // a SentencePiece model to use; empty: train one on the training documents
  std::filesystem::path tokenizer;
  int vocab_size = 1024;                   // of the trained tokenizer, exact
  std::string normalization = "identity";  // of the trained tokenizer; see train_tokenizer
  // At most so much text is trained on: whole documents, chosen by digest, and the start of the next one.
  std::int64_t tokenizer_bytes = 16'000'000;

  // Leave out training documents that hold a passage of the validation text (text_overlap.h).
  bool drop_overlap = false;

  std::int64_t tokens_per_shard = 100'000'000;
  bool shuffle = true;  // order documents by digest (a fixed random order); otherwise as given
  int threads = 0;      // 0: one per core
  std::string source;   // words for the manifest; empty: the inputs' names

  // Long phases, if both are set: one begins (total 0: not known in advance; an empty `what` ends it), and so
  // many units more are done (from any thread).
  std::function<void(const std::string& what, const std::string& unit, double total)> phase;
  std::function<void(double units)> advance;
};

struct PrepareSummary {
  Manifest manifest;
  std::vector<DocumentChange> changes;                              // as in changes.jsonl
  std::vector<std::pair<std::filesystem::path, TextForm>> remarks;  // Corpus::remarks()
};

// Writes fineweb_train_%06d.bin, fineweb_val_%06d.bin, tokenizer.model, validation.txt, changes.jsonl (if a document
// was left out or changed) and manifest.json into a folder that takes the place of `output` at the end (OutputFolder). Equal documents are
// kept once. A shard's end cuts a document only if it is longer than a shard. The same inputs and options give the same bytes.
//
// Where the tokens may spell another text than the documents as they were given, fineweb_val_bytes_%06d.bin holds the original bytes of
// each validation token (side_table.h). Under a text transform validation.jsonl has the original documents in place of validation.txt.
//
// Throws config_error for options out of range and an output that must not be replaced, run_error for one that cannot be written, and
// data_error for documents, a vocabulary or a tokenizer that do not make data whose bytes can be counted.
PrepareSummary prepare(const PrepareOptions& options);

}  // namespace mulligan
