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

// D24: whether a tokenizer keeps text.

// Text of five classes (ASCII, Latin-1, Chinese, emoji, mathematics) there and back, and whether the
// vocabulary is of the kind that the tokenizer takes it for: byte pieces are all there, and no pieces
// are spelled in GPT-2's letters for bytes.
Finding check_tokenizer(const Tokenizer& tokenizer);

// One side of the data, as the checks see it.
struct Corpus {
  std::string name;  // "training", "validation"
  TokenStatistics statistics;
};

// D20: ids within the vocabulary. D21: unknown tokens. D22: entropy of the ids. D23: the commonest id,
// and how many there are. `tokenizer` may be null: then there is no D21. `vocabulary` is the model's.
std::vector<Finding> check_corpus(const Corpus& corpus, int vocabulary, const Tokenizer* tokenizer);

// D25: validation text that stands in the training data, changed or not.
Finding check_overlap(const TextOverlap& overlap);

// D41: whether a document begins in any of the shards of a side (`name`).
Finding check_documents(const std::string& name, const std::vector<std::filesystem::path>& shards,
                        int bos_id);

// D20 to D23 over at most `budget` tokens of each side (sample_tokens). Either side may be empty: it is left out.
std::vector<Finding> check_shards_as_corpus(const std::vector<std::filesystem::path>& training,
                                            const std::vector<std::filesystem::path>& validation,
                                            int vocabulary, const Tokenizer* tokenizer, std::uint64_t budget);

}  // namespace mulligan::doctor
