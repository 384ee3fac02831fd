#include "framework/data/transformed_encoding.h"

#include <algorithm>
#include <limits>

#include "framework/core/error.h"
#include "framework/core/utf8.h"

namespace mulligan {
namespace {

// The character that begins at `text`; a byte where there is none.
std::string_view first_character(std::string_view text) {
  return text.substr(0, std::max<std::size_t>(utf8_length(text), 1));
}
std::string_view last_character(std::string_view text) {
  for (std::size_t length = 1; length <= std::min<std::size_t>(4, text.size()); ++length) {
    const std::string_view end = text.substr(text.size() - length);
    if (utf8_length(end) == length) return end;
  }
  return text.substr(text.size() - 1);
}

// Whether the tokenizer reads nothing where this character stands between two others: not even a space.
bool vanishes(const Tokenizer& tokenizer, std::string_view character) {
  return tokenizer.encode("a" + std::string(character) + "a") == tokenizer.encode("aa");
}

}  // namespace

bool is_trained_for(const Tokenizer& tokenizer, const TextTransform& transform) {
  return std::ranges::all_of(transform.symbols(),
                             [&](const std::string& symbol) { return tokenizer.find(symbol) >= 0; });
}

const TextTransform* transform_of(const Tokenizer& tokenizer) {
  for (const TextTransform* transform : text_transforms()) {
    if (is_trained_for(tokenizer, *transform)) return transform;
  }
  return nullptr;
}

DocumentEncoding encode_document(const Tokenizer& tokenizer, const TextTransform* transform,
                                 std::string_view text) {
  DocumentEncoding result;
  std::string transformed;
  if (transform) transformed = transform->apply(text);
  const std::string_view read = transform ? std::string_view(transformed) : text;
  // What precedes the first slice, and the slices.
  std::vector<std::string> slices = {""};
  for (Tokenizer::Slice& slice : tokenizer.encode_slices(read)) {
    if (result.ids.empty()) slices.front() = read.substr(0, slice.begin);
    result.ids.push_back(slice.id);
    slices.push_back(std::move(slice.text));
  }
  if (result.ids.empty()) return result;
  std::vector<std::uint64_t> bytes;
  if (transform) bytes = transform->original_bytes(slices);
  std::size_t end = 0;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    end += transform ? bytes[i] : slices[i].size();
    if (i > 0) result.ends.push_back(end);  // what precedes the first token belongs to it
  }
  if (end > text.size()) {
    throw data_error("the tokens of a document of {} bytes stand for {}; use another tokenizer", text.size(),
                     end);
  }
  result.ends.back() = text.size();
  return result;
}

std::vector<std::uint16_t> original_counts(const DocumentEncoding& encoding, std::size_t size,
                                           const TextOrigin& origin) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint16_t>::max();
  std::vector<std::uint16_t> counts;
  std::uint64_t before = 0, waiting = 0;
  for (const std::size_t end : encoding.ends) {
    const std::uint64_t until = origin.before(end, size);
    waiting += until - before;
    before = until;
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
      counts.size(), origin.bytes(), most);
}

std::uint64_t counted_bytes(const Tokenizer& tokenizer, std::string_view document) {
  if (tokenizer.keeps_text()) return document.size();
  const auto silent = [&](std::string_view character) { return tokenizer.encode(character).empty(); };
  std::string_view rest = document;
  while (!rest.empty() && silent(first_character(rest))) rest.remove_prefix(first_character(rest).size());
  std::size_t tail = 0;  // bytes at the end that no piece stands for alone
  while (tail < rest.size() && silent(last_character(rest.substr(0, rest.size() - tail))))
    tail += last_character(rest.substr(0, rest.size() - tail)).size();
  // Of these the ones that vanish without a trace belong to the character before them.
  while (tail > 0) {
    const std::string_view next = first_character(rest.substr(rest.size() - tail));
    if (!vanishes(tokenizer, next)) break;
    tail -= next.size();
  }
  return rest.size() - tail;
}

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
  // After white space no transform carries anything over.
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
