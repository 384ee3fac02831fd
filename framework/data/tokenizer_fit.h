// Whether token ids are those that a tokenizer gives to the text that it decodes them to.
//
// Bytes are counted by the tokenizer's pieces, so a tokenizer that did not make the shards, or one whose
// pieces were made longer, counts bytes that were not tokenised. Such pieces show: the tokenizer, given the text
// that they spell, takes other ids. Two properties of SentencePiece make this exact, for byte pair merges
// and for the best path of a unigram model alike: what stands between two tokens' borders is cut as it is
// cut alone, since no merge has crossed the borders. So every piece that occurs must be what the tokenizer
// makes of its text, and so must each stretch of pieces from anywhere in a document. No document's
// beginning or end is needed. Normalisation was done before, so doing it again must change nothing: rules that
// make text longer each time would count bytes that the text does not have.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mulligan {

struct TokenizerFit {
  // That all pieces but control, unknown and byte ones count; odd: of those whose text the tokenizer gives other ids.
  std::uint64_t bytes = 0, odd_bytes = 0;
  // Stretches of tokens, spread evenly over the text; all of a short one.
  std::uint64_t stretches = 0, odd_stretches = 0;
  std::string example;  // the text of the first odd stretch or piece

  // A share of 0.001 of the bytes and 0.01 of the stretches may be odd: ties of a unigram model fall
  // differently with what stands before them, and some documents may hold what other versions encode
  // otherwise. More than that moves a score by no more than these shares.
  bool fits() const;
};

// `model`: the bytes of the tokenizer's file. Looks at every piece that occurs, and at up to `most_stretches`
// stretches of 64 tokens. Throws data_error for a token that the tokenizer has not.
TokenizerFit tokenizer_fit(const std::string& model, std::span<const std::uint16_t> tokens,
                           std::size_t most_stretches = 4096);

}  // namespace mulligan
