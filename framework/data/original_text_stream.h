// OriginalTextStream: transformed text that comes in pieces, given on as the original.
#pragma once

#include <string>
#include <string_view>

#include "framework/data/text_transform.h"

namespace mulligan {

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
