// A document under a text transform: its tokens, and the original bytes of each.
#pragma once

#include <cstdint>
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

}  // namespace mulligan
