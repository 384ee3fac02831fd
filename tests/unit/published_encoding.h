// Tokens of a document and their bytes as published side tables count them: without what the tokenizer leaves out at both ends.
#pragma once

#include "framework/data/text_transform.h"
#include "framework/data/tokenizer.h"

namespace mulligan {

struct PublishedEncoding {
  std::vector<int> ids;  // without BOS
  std::vector<std::uint16_t> bytes;
};

inline PublishedEncoding encode_published(const Tokenizer& tokenizer, const TextTransform& transform,
                                          std::string_view document) {
  PublishedEncoding result;
  std::vector<std::uint64_t> ends;
  const std::string transformed = transform.apply(document, &ends);
  ends.insert(ends.begin(), 0);
  for (const Tokenizer::Slice& slice : tokenizer.encode_slices(transformed)) {
    result.ids.push_back(slice.id);
    result.bytes.push_back(static_cast<std::uint16_t>(ends[slice.end] - ends[slice.begin]));
  }
  return result;
}

}  // namespace mulligan
