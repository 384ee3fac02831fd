// The [data] section: where the token shards and their tokenizer are. core_schema.cpp explains the keys.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/config/value.h"
#include "framework/config/words.h"

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
template <>
inline constexpr auto config_words<DataOrder> = std::array{"spans", "stream", "shuffled"};
// Whether attention ends where a document does.
enum class DataDocuments { separate, joined };
template <>
inline constexpr auto config_words<DataDocuments> = std::array{"separate", "joined"};

// Which bytes bits per byte are divided by: those of the original text, or those that the tokenizer makes of it
// (docs/evaluation.md).
enum class ByteRule { original, tokenizer };
template <>
inline constexpr auto config_words<ByteRule> = std::array{"original", "tokenizer"};

// Paths are taken relative to the folder the program was started in.
struct DataConfig {
  std::string train;
  std::string validation;
  std::string tokenizer;  // SentencePiece .model file; needed to count bytes. "": none ("none" in the file)
  DataOrder order = DataOrder::spans;
  DataDocuments documents = DataDocuments::separate;
  std::string validation_bytes;
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
