// A document under a text transform: its tokens, and the original bytes of each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/data/text_transform.h"
#include "framework/data/tokenizer.h"

namespace mulligan {

// Whether the tokenizer was trained for text under this transform: each of its symbols is a piece of its own.
bool is_trained_for(const Tokenizer& tokenizer, const TextTransform& transform);
// The transform whose text the tokenizer was trained for; null: none.
const TextTransform* transform_of(const Tokenizer& tokenizer);

struct TransformedEncoding {
  std::vector<int> ids;              // without BOS
  std::vector<std::uint16_t> bytes;  // of the original text, for each id
};

// Tokens of the transformed `document` and the bytes of the original that they stand for: all of it but what
// the tokenizer's own rules leave out at both ends. Throws data_error for a piece of more than 65,535 bytes,
// which side tables cannot hold.
TransformedEncoding encode_transformed(const Tokenizer& tokenizer, const TextTransform& transform,
                                       std::string_view document);

// How many bytes of an original document its tokens must stand for, found without encoding it: all but the
// characters at both ends that the tokenizer, given them alone, has no piece for.
std::uint64_t counted_bytes(const Tokenizer& tokenizer, std::string_view document);

// OriginalTextStream: transformed text that comes in pieces, given on as the original.
class OriginalTextStream {
 public:
  // `transform` outlives the object; null: text is given on as it comes.
  explicit OriginalTextStream(const TextTransform* transform) : transform_(transform) {}

  // The original of what is complete with this piece: up to the last word that has ended. What the transform cannot have
  // made (a model may write a mark that no letter follows) is given on as it is.
  std::string take(std::string_view piece);
  // The rest.
  std::string finish();

 private:
  std::string original_of(std::string_view text) const;

  const TextTransform* transform_;
  std::string kept_;
};

}  // namespace mulligan
