// Training a SentencePiece BPE tokenizer the way the published ones were.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "framework/core/error.h"

namespace mulligan {

// SentencePiece refuses a vocabulary that is too large or too small for the texts.
class VocabularyRefused : public Error {
 public:
  using Error::Error;
};

// Gives the next training text, or nothing at the end.
using TextStream = std::function<std::optional<std::string>()>;

// The normalisation that changes nothing.
inline constexpr const char* kIdentity = "identity";

// Trains and returns the serialised model: BPE, byte fallback, digits split, character coverage 0.999, no
// dummy prefix, pad 0, bos 1, eos 2, unk 3, exactly `vocab_size` pieces. Same texts, same model.
//
// normalization: "identity" keeps every byte of a text and has pieces for runs of spaces; SentencePiece's
// others ("nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf") rewrite characters and white space. The published
// FineWeb tokenizers have "nmt_nfkc" and otherwise these settings.
//
// `symbols` become pieces of their own, with the first ids after the special ones.
//
// `required`: characters that become pieces however rare they are.
//
// Throws config_error for a size or a normalisation that does not exist, data_error without text, VocabularyRefused, and
// what `texts` throws.
std::string train_tokenizer(const TextStream& texts, int vocab_size,
                            const std::string& normalization = kIdentity,
                            const std::vector<std::string>& symbols = {}, const std::string& required = {});

}  // namespace mulligan
