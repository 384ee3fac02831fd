#include "tools/doctor/tokenizer_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mulligan::doctor {
namespace {

const std::vector<std::pair<const char*, std::string>> classes = {
    {"ASCII", "The quick brown fox, 3.14 of {them}; jumps over\n\tthe lazy dog & back!"},
    {"Latin-1",
     "Stra\xC3\x9F"
     "e, na\xC3\xAFve caf\xC3\xA9, \xC2\xBFqu\xC3\xA9?"},
    {"CJK",
     "\xE4\xBB\x8A\xE5\xA4\xA9\xE5\xA4\xA9\xE6\xB0\x94\xE3\x81\xA7\xE3\x81\x99\xED\x95\x9C\xEA\xB8\x80"},
    {"emoji", "\xF0\x9F\x98\x80 and \xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x94\xAC"},
    {"mathematics",
     "\xE2\x88\x91\xE2\x82\x99 x\xC2\xB2 \xE2\x89\xA4 \xE2\x88\x9A\xCF\x80 \xE2\x88\xAB\xE2\x88\x9E"},
};
// How byte-level vocabularies spell the space and the line feed: U+0120, U+010A.
constexpr const char* byte_level_space = "\xC4\xA0";
constexpr const char* byte_level_line = "\xC4\x8A";

std::size_t unknown_among(const Tokenizer& tokenizer, const std::vector<int>& ids) {
  const int unknown = tokenizer.find("<unk>");
  return static_cast<std::size_t>(
      std::ranges::count_if(ids, [&](int id) { return id == unknown && tokenizer.is_textless(id); }));
}

}  // namespace

Finding check_tokenizer(const Tokenizer& tokenizer) {
  Finding f;
  f.id = "D24";
  f.title = "text through the tokenizer and back";
  f.threshold = "any unknown token or loss fails; warns where the tokenizer's own normalisation changes text";
  std::vector<std::string> lossy, changed;
  std::size_t unknown = 0;
  for (const auto& [name, text] : classes) {
    const std::vector<int> ids = tokenizer.encode(text);
    const std::size_t strangers = unknown_among(tokenizer, ids);
    unknown += strangers;
    const std::vector<std::uint16_t> stored(ids.begin(), ids.end());
    const bool same =
        tokenizer.keeps_text() ? tokenizer.document_text(stored) == text : tokenizer.decode(ids) == text;
    if (same && strangers == 0) continue;
    (tokenizer.keeps_text() || strangers > 0 ? lossy : changed).emplace_back(name);
  }
  int bytes = 0, byte_level = 0;
  for (int id = 0; id < tokenizer.vocab_size(); ++id) {
    bytes += tokenizer.is_byte(id);
    byte_level +=
        tokenizer.piece(id).starts_with(byte_level_space) || tokenizer.piece(id).starts_with(byte_level_line);
  }
  f.measured = fmt::format("{} of {} classes of text kept, {} unknown tokens, {} byte pieces",
                           classes.size() - lossy.size() - changed.size(), classes.size(), unknown, bytes);
  if (byte_level * 20 > tokenizer.vocab_size()) {
    f.verdict = Verdict::fail;
    f.message = fmt::format(
        "{} of {} pieces begin with GPT-2's letter for a space: a byte-level vocabulary is taken for another "
        "kind",
        byte_level, tokenizer.vocab_size());
  } else if (bytes != 0 && bytes != 256) {
    f.verdict = Verdict::fail;
    f.message = fmt::format("the tokenizer has {} of the 256 byte pieces", bytes);
  } else if (!lossy.empty()) {
    f.verdict = Verdict::fail;
    f.message = fmt::format("the tokenizer loses text: {}", fmt::join(lossy, ", "));
  } else if (!changed.empty()) {
    f.verdict = Verdict::warn;
    f.message = fmt::format("the tokenizer's normalisation changes text: {}", fmt::join(changed, ", "));
  }
  if (f.verdict != Verdict::pass)
    f.hint =
        "train a tokenizer with byte fallback and without normalisation (mulligan prepare does), or name the "
        "data's own";
  return f;
}

}  // namespace mulligan::doctor
