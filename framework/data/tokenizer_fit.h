// Whether token ids are those that a tokenizer gives to the text that it decodes them to.
//
// Bytes are counted by the tokenizer's pieces. A tokenizer that did not make the shards shows: given the text that their pieces spell, it
// takes other ids. This is exact for byte pair merges and for the best path of a unigram model. What stands between the borders of two
// tokens is cut as it is cut alone, since no merge has crossed them. So every piece that occurs, and each stretch of pieces from
// anywhere in a document, must be what the tokenizer makes of its text. Normalisation that is done again must change nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace mulligan {

struct TokenizerFit {
  // That all pieces but control, unknown and byte ones count; odd: of those whose text the tokenizer gives other ids.
  std::uint64_t bytes = 0, odd_bytes = 0;
  // Stretches of tokens, spread evenly over the text; all of a short one.
  std::uint64_t stretches = 0, odd_stretches = 0;
  std::string example;  // the text of the first odd stretch or piece

  // A share of 0.001 of the bytes and 0.01 of the stretches may be odd: ties of a unigram model fall differently with
  // what stands before them, and other versions encode some documents otherwise.
  bool fits() const;
};

// `model`: the bytes of the tokenizer's file. Looks at every piece that occurs, and at up to 4,096 stretches of 64 tokens.
// Throws data_error for a token that the tokenizer has not.
TokenizerFit tokenizer_fit(const std::string& model, std::span<const std::uint16_t> tokens);

}  // namespace mulligan
