// TextUnits: a token stream as the letters and digits that it spells, which is what texts are compared by.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mulligan {

class Tokenizer;

// Case, white space, punctuation and where one token ends and the next begins leave no trace, so the same text
// in another spelling or cut by another tokenizer has the same units: one for a letter or a digit, two for a
// character of a script that has thousands. Immutable; const functions may be called from several threads.
class TextUnits {
 public:
  // Without a tokenizer (null) nothing is known of the text, and each token is two units, its id.
  explicit TextUnits(const Tokenizer* tokenizer);
  // Appends the units of `tokens` to `units`. Control tokens, and ids that the tokenizer lacks, have none.
  void append(std::span<const std::uint16_t> tokens, std::vector<std::uint8_t>& units) const;

 private:
  std::vector<std::uint32_t> begin_;  // of each id in spelled_, and the end of the last
  std::vector<std::uint8_t> spelled_;
};

}  // namespace mulligan
