#include "framework/data/tokenizer_fit.h"

#include <algorithm>
#include <vector>

#include "framework/core/error.h"
#include "framework/core/parallel.h"
#include "framework/data/tokenizer.h"

namespace mulligan {
namespace {

constexpr std::size_t kStretch = 64, kMostStretches = 4096;

using Ids = std::vector<std::uint16_t>;

// The same pieces and merges, for parts of a text that was normalised before: nothing is put in front or left out,
// and without `keep_map` no character is rewritten either.
Tokenizer for_normalised_text(std::string model, bool keep_map) {
  // A message that occurs again is merged into the first one: the normaliser's (field 3 of the model) without
  // a space put in front (3), with all white space kept (4), as marks (5), and without a character map (2).
  constexpr std::string_view spaces("\x1A\x06\x18\x00\x20\x00\x28\x01", 8), no_map("\x1A\x02\x12\x00", 4);
  model += spaces;
  if (!keep_map) model += no_map;
  return Tokenizer::from_bytes(model, "tokenizer");
}

std::string text_of(const Tokenizer& tokenizer, std::span<const std::uint16_t> ids) {
  std::string text;
  for (const std::uint16_t id : ids) text += tokenizer.text_of(id);
  return text;
}

bool encodes_to(const Tokenizer& tokenizer, const std::string& text, std::span<const std::uint16_t> ids) {
  return std::ranges::equal(tokenizer.encode_part(text, false), ids);
}

// The parts of a stretch that pieces spell.
std::vector<std::span<const std::uint16_t>> spelled_runs(const std::vector<std::uint8_t>& spelling,
                                                         std::span<const std::uint16_t> stretch) {
  std::vector<std::span<const std::uint16_t>> runs;
  for (std::size_t i = 0; i < stretch.size();) {
    std::size_t end = i;
    while (end < stretch.size() && spelling[stretch[end]] != 0) ++end;
    if (end > i) runs.push_back(stretch.subspan(i, end - i));
    i = std::max(end, i + 1);
  }
  return runs;
}

}  // namespace

bool TokenizerFit::fits() const {
  return static_cast<double>(odd_bytes) <= 0.001 * static_cast<double>(bytes) &&
         static_cast<double>(odd_stretches) <= 0.01 * static_cast<double>(stretches);
}

TokenizerFit tokenizer_fit(const std::string& model, std::span<const std::uint16_t> tokens) {
  const Tokenizer tokenizer = Tokenizer::from_bytes(model, "tokenizer");
  const Tokenizer plain = for_normalised_text(model, false), again = for_normalised_text(model, true);
  const auto pieces = static_cast<std::size_t>(tokenizer.vocab_size());
  // Bytes may stand for any text, and control and unknown ids for none: stretches end before them.
  std::vector<std::uint8_t> spelling;
  for (int id = 0; id < tokenizer.vocab_size(); ++id)
    spelling.push_back(!tokenizer.is_byte(id) && !tokenizer.is_textless(id) ? 1 : 0);

  TokenizerFit fit;
  std::vector<std::uint64_t> occurs(pieces);
  for (const std::uint16_t token : tokens) {
    if (token >= pieces) throw data_error("token {} is outside the tokenizer's {} pieces", token, pieces);
    ++occurs[token];
  }
  for (std::size_t id = 0; id < pieces; ++id) {
    if (occurs[id] == 0 || spelling[id] == 0) continue;
    const Ids alone{static_cast<std::uint16_t>(id)};
    const std::string text = text_of(tokenizer, alone);
    fit.bytes += occurs[id] * text.size();
    if (encodes_to(plain, text, alone)) continue;
    fit.odd_bytes += occurs[id] * text.size();
    if (fit.example.empty()) fit.example = text;
  }

  const std::size_t places = (tokens.size() + kStretch - 1) / kStretch;
  const std::size_t looked_at = std::min(places, kMostStretches);
  std::vector<std::string> odd(looked_at);
  std::vector<std::uint8_t> any(looked_at);
  parallel_for(looked_at, 0, [&](std::size_t i) {
    const std::size_t begin = i * places / looked_at * kStretch;
    for (const auto run :
         spelled_runs(spelling, tokens.subspan(begin, std::min(kStretch, tokens.size() - begin)))) {
      any[i] = 1;
      const std::string text = text_of(tokenizer, run);
      if (odd[i].empty() && !(encodes_to(plain, text, run) && encodes_to(again, text, run))) odd[i] = text;
    }
  });
  for (std::size_t i = 0; i < looked_at; ++i) {
    fit.stretches += any[i];
    if (odd[i].empty()) continue;
    ++fit.odd_stretches;
    if (fit.example.empty()) fit.example = odd[i];
  }
  return fit;
}

}  // namespace mulligan
