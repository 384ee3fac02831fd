#include "framework/data/transformed_encoding.h"

#include <algorithm>
#include <limits>

#include "framework/core/error.h"

namespace mulligan {

const TextTransform* transform_of(const Tokenizer& tokenizer) {
  const TextTransform& transform = text_transform("caseops");
  const auto is_piece = [&](const std::string& symbol) { return tokenizer.find(symbol) >= 0; };
  return std::ranges::all_of(transform.symbols(), is_piece) ? &transform : nullptr;
}

DocumentEncoding encode_document(const Tokenizer& tokenizer, const TextTransform* transform,
                                 std::string_view text, TextOrigin origin) {
  DocumentEncoding result;
  std::vector<std::uint64_t> ends;
  const std::string read = transform ? transform->apply(text, &ends) : std::string(text);
  if (transform) origin.change(std::move(ends), text.size());
  for (const Tokenizer::Slice& slice : tokenizer.encode_slices(read)) {
    data_error_if(slice.end > read.size(),
                  "the tokens of a document of {} bytes stand for {}; use another tokenizer", read.size(),
                  slice.end);
    if (result.ids.empty()) result.left_out = origin.before(slice.begin, read.size());
    result.ids.push_back(slice.id);
    result.ends.push_back(origin.before(slice.end, read.size()));
  }
  result.left_out += origin.bytes() - (result.ids.empty() ? 0 : result.ends.back());
  if (!result.ids.empty()) result.ends.back() = origin.bytes();
  return result;
}

std::vector<std::uint16_t> original_counts(const DocumentEncoding& encoding) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint16_t>::max();
  std::vector<std::uint16_t> counts;
  std::uint64_t before = 0, waiting = 0;
  for (const std::size_t end : encoding.ends) {
    waiting += end - before;
    before = end;
    counts.push_back(static_cast<std::uint16_t>(std::min(waiting, most)));
    waiting -= counts.back();
  }
  for (auto count = counts.rbegin(); waiting > 0 && count != counts.rend(); ++count) {
    const std::uint64_t more = std::min(waiting, most - *count);
    *count = static_cast<std::uint16_t>(*count + more);
    waiting -= more;
  }
  if (waiting == 0) return counts;
  throw data_error(
      "its {} tokens stand for {} bytes, and a byte side table can say at most {} of each; leave the document out",
      counts.size(), before, most);
}

std::string original_text(const TextTransform* transform, std::string_view text) {
  try {
    return transform ? transform->undo(text) : std::string(text);
  } catch (const Error&) {
    return std::string(text);
  }
}

std::string OriginalTextStream::take(std::string_view piece) {
  if (!transform_) return std::string(piece);
  kept_ += piece;
  // After white space no transform carries anything over.
  const std::size_t space = kept_.find_last_of(" \n\t\r");
  if (space == std::string::npos) return {};
  std::string original = original_text(transform_, std::string_view(kept_).substr(0, space + 1));
  kept_.erase(0, space + 1);
  return original;
}

std::string OriginalTextStream::finish() {
  std::string original = original_text(transform_, kept_);
  kept_.clear();
  return original;
}

}  // namespace mulligan
