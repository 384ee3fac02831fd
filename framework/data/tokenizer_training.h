// Training a SentencePiece BPE tokenizer the way the published ones were.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "framework/data/tokenizer.h"

namespace mulligan {

// Gives the next training text, or nothing at the end.
using TextStream = std::function<std::optional<std::string>()>;

// Trains and returns the serialised model. Settings of the published FineWeb tokenizers: BPE, byte fallback,
// digits split, character coverage 0.999, nmt_nfkc normalisation, no dummy prefix, pad 0, bos 1, eos 2, unk
// 3; unlike them the size is exact. Same texts, same model. Throws data_error
// when SentencePiece refuses: a vocabulary too large or too small for the texts.
std::string train_tokenizer(const TextStream& texts, int vocab_size);

// The .vocab file that belongs to a model: one "piece<TAB>score" line per id.
std::string vocab_listing(const Tokenizer& tokenizer);

}  // namespace mulligan
