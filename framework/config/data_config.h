// The [data] section: where the token shards and their tokenizer are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/config/value.h"

namespace mulligan {

// One row of [[data.mix]]: a part of the training text, of which so much is read.
struct DataMixRow {
  std::string name;
  std::string train;    // its shards, as data.train names them
  double weight = 1.0;  // its share of the rows read is weight / the sum of all weights
  Origin origin;        // of the row
};

// How a training stream is cut into rows of T tokens (framework/data/loader.h).
enum class DataOrder { spans, stream, shuffled };
// Whether attention ends where a document does.
enum class DataDocuments { separate, joined };

// Which bytes bits per byte are divided by: those of the original text, or those that the tokenizer makes of it
// (docs/evaluation.md).
enum class ByteRule { original, tokenizer };

// Paths are taken relative to the folder the program was started in.
struct DataConfig {
  // a glob such as data/fineweb_train_*.bin, or a folder of shards; "" where [[data.mix]] names them
  std::string train;
  std::string validation;  // likewise
  std::string tokenizer;   // SentencePiece .model file; needed to count bytes. "": none ("none" in the file)
  DataOrder order = DataOrder::spans;
  DataDocuments documents = DataDocuments::separate;
  // Byte side tables of the validation shards: a glob or a folder; "": the manifest's, and without them the
  // tokenizer's pieces count.
  std::string validation_bytes;
  // The original validation documents (JSON Lines, in the order of the shards) that the side tables are
  // compared with; "": the manifest's, or none.
  std::string validation_documents;
  ByteRule byte_rule = ByteRule::original;
  bool exact_vocabulary = false;  // a tokenizer of fewer pieces than model.vocabulary is refused, too
  int64_t prefetch = 4;           // micro-batches that the loader keeps ready, >= 1
  std::vector<DataMixRow> mix;    // empty: data.train alone
};

// What names the training shards, row by row.
inline std::vector<std::string> training_patterns(const DataConfig& data) {
  if (data.mix.empty()) return {data.train};
  std::vector<std::string> patterns;
  for (const DataMixRow& row : data.mix) patterns.push_back(row.train);
  return patterns;
}

}  // namespace mulligan
