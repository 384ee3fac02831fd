// A document as its tokens, and the original bytes of each, also where a text transform or the tokenizer's own
// normalisation changes the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/data/text_source.h"
#include "framework/data/text_transform.h"
#include "framework/data/tokenizer.h"

namespace mulligan {

// The transform whose text the tokenizer was trained for: each of its symbols is a piece of its own. Null: none.
const TextTransform* transform_of(const Tokenizer& tokenizer);

// The tokens of a document with the places in the document as it was given where the stretch of each ends. Every byte
// belongs to one token: what the tokenizer leaves out at the start to the first, at the end to the last.
struct DocumentEncoding {
  std::vector<int> ids;  // without BOS
  std::vector<std::size_t> ends;
  std::uint64_t left_out =
      0;  // bytes at both ends that the tokenizer reads nothing of; published tables do not count them
};
// `transform`: that is applied to the text before; null: none. `origin`: of the text.
DocumentEncoding encode_document(const Tokenizer& tokenizer, const TextTransform* transform,
                                 std::string_view text, TextOrigin origin);
// For each token its bytes of the document as it was given. A count above 65,535, the most of a side table, goes on with
// the token after it. Throws data_error where there is none left.
std::vector<std::uint16_t> original_counts(const DocumentEncoding& encoding);

// What a transformed text was made of. Text that the transform cannot have made (normalisation has changed what a symbol stands in
// front of, or a model has written it) stays as it is, also where `transform` is null.
std::string original_text(const TextTransform* transform, std::string_view text);

// OriginalTextStream: transformed text that comes in pieces, given on as the original.
class OriginalTextStream {
 public:
  // `transform` outlives the object; null: text is given on as it comes.
  explicit OriginalTextStream(const TextTransform* transform) : transform_(transform) {}

  // The original of what is complete with this piece: up to the last word that has ended.
  std::string take(std::string_view piece);
  // The rest.
  std::string finish();

 private:
  const TextTransform* transform_;
  std::string kept_;
};

}  // namespace mulligan
