// Checks of token shards before anything learns from them: D20 to D23, D25 and D41.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "framework/data/text_overlap.h"
#include "framework/data/token_statistics.h"
#include "framework/data/tokenizer.h"
#include "tools/doctor/finding.h"

namespace mulligan::doctor {

// D24: text of five classes (ASCII, Latin-1, Chinese, emoji, mathematics) there and back, and the kind of vocabulary.
Finding check_tokenizer(const Tokenizer& tokenizer);

// One side of the data, as the checks see it.
struct Corpus {
  std::string name;  // "training", "validation"
  TokenStatistics statistics;
};

// D20 to D23; D21 only with a tokenizer, which may be null. `vocabulary` is the model's.
std::vector<Finding> check_corpus(const Corpus& corpus, int vocabulary, const Tokenizer* tokenizer);

// D25: validation text that stands in the training data, changed or not.
Finding check_overlap(const TextOverlap& overlap);

// D41: whether a document begins in any of the shards of a side (`name`).
Finding check_documents(const std::string& name, const std::vector<std::filesystem::path>& shards,
                        int bos_id);

// Both sides of the data. Either may be empty.
struct DataSides {
  std::vector<std::filesystem::path> training, validation;
  int vocabulary = 0;                    // of the model
  const Tokenizer* tokenizer = nullptr;  // may be null
  std::uint64_t budget = 0;              // tokens of each side that are looked at, at most
  int bos_id = -1;                       // below 0: documents are joined, or not looked at
};
struct SeenData {
  std::vector<Finding> findings;  // D20 to D23, D37, D41
  double repeat_share = 0;        // of the training data
  std::vector<double> shares;     // of the training data, by token
  double bigram_nats = 0;         // of the validation data, without any of the training data
  double unigram_nats = 0;        // likewise
};
SeenData see_data(const DataSides& sides);

}  // namespace mulligan::doctor
