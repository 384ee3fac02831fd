#include "framework/data/original_text_stream.h"

#include "framework/core/error.h"

namespace mulligan {

std::string OriginalTextStream::original_of(std::string_view text) const {
  try {
    return transform_->undo(text);
  } catch (const Error&) {
    return std::string(text);
  }
}

std::string OriginalTextStream::take(std::string_view piece) {
  if (!transform_) return std::string(piece);
  kept_ += piece;
  // Behind white space no transform carries anything over.
  const std::size_t space = kept_.find_last_of(" \n\t\r");
  if (space == std::string::npos) return {};
  std::string original = original_of(std::string_view(kept_).substr(0, space + 1));
  kept_.erase(0, space + 1);
  return original;
}

std::string OriginalTextStream::finish() {
  std::string original = transform_ ? original_of(kept_) : kept_;
  kept_.clear();
  return original;
}

}  // namespace mulligan
