// The tokenizer that made the shards is told from others: those of any other size, and those with longer pieces.
#include "framework/data/tokenizer_fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "framework/data/tokenizer.h"
#include "tests/unit/tokenizer_support.h"

namespace mulligan::data_tokenizer_fit_test {
namespace {

std::vector<std::string> texts(std::uint32_t state, const std::vector<std::string>& words) {
  std::vector<std::string> all;
  for (int document = 0; document < 60; ++document) {
    std::string text = document % 3 == 0 ? "  indented\n\tand\x01\xFF odd " : "";
    for (int w = 0; w < 60; ++w) {
      state = state * 1664525u + 1013904223u;
      text += words[(state >> 16) % words.size()] + (w % 9 == 8 ? ".\n    " : "  ") +
              std::to_string(state % 90) + " ";
    }
    all.push_back(text + "\xE2\x96\x81 \xC2\xBD \xEF\xAC\x81 A\xCC\x81");
  }
  return all;
}

const std::vector<std::string>& english() {
  static const std::vector<std::string> all = texts(
      1, {"bridge", "water", "stone", "garden", "light", "responsibility", "the", "and", "record", "other"});
  return all;
}
const std::vector<std::string>& german() {
  static const std::vector<std::string> all =
      texts(2, {"Br\xC3\xBC"
                "cke",
                "Wasser", "Stein", "Garten", "Licht", "Verantwortung", "die", "und", "Eintrag", "andere"});
  return all;
}

std::vector<std::uint16_t> stream(const Tokenizer& tokenizer, const std::vector<std::string>& documents) {
  std::vector<std::uint16_t> tokens;
  for (const std::string& text : documents) {
    tokens.push_back(static_cast<std::uint16_t>(tokenizer.bos_id()));
    for (const int id : tokenizer.encode(text)) tokens.push_back(static_cast<std::uint16_t>(id));
  }
  return tokens;
}

TEST(TokenizerFit, TheShardsOwnTokenizerFitsToTheLastStretch) {
  for (const std::string rules : {"identity", "nmt_nfkc"}) {
    const std::string model = model_trained_on(english(), 400, rules);
    const Tokenizer tokenizer = Tokenizer::from_bytes(model, rules);
    const std::vector<std::uint16_t> tokens = stream(tokenizer, english());
    // Cut anywhere, as at the end of a shard.
    for (const std::size_t from : {0u, 1u, 77u, 200u}) {
      const TokenizerFit fit = tokenizer_fit(model, std::span(tokens).subspan(from));
      EXPECT_GT(fit.stretches, 50u) << rules;
      EXPECT_EQ(fit.odd_stretches, 0u) << rules << ": " << fit.example;
      EXPECT_EQ(fit.odd_bytes, 0u) << rules << ": " << fit.example;
      EXPECT_TRUE(fit.fits());
    }
  }
}

TEST(TokenizerFit, TextOfAnotherKindStillFits) {  // bytes where there are no pieces
  const std::string model = model_trained_on(english(), 400);
  const TokenizerFit fit = tokenizer_fit(model, stream(Tokenizer::from_bytes(model, "english"), german()));
  EXPECT_EQ(fit.odd_stretches, 0u) << fit.example;
  EXPECT_TRUE(fit.fits());
}

TEST(TokenizerFit, AnotherTokenizerOfTheSameSizeDoesNot) {
  const std::string model = model_trained_on(english(), 400), foreign = model_trained_on(german(), 400);
  const Tokenizer own = Tokenizer::from_bytes(model, "english"),
                  other = Tokenizer::from_bytes(foreign, "german");
  ASSERT_EQ(own.vocab_size(), other.vocab_size());
  EXPECT_FALSE(tokenizer_fit(foreign, stream(own, english())).fits());
  EXPECT_FALSE(tokenizer_fit(model, stream(other, german())).fits());
}

// The ids that occur most often among those of pieces.
std::set<int> frequent(const Tokenizer& tokenizer, std::span<const std::uint16_t> tokens, std::size_t count) {
  std::map<int, int> occurs;
  for (const std::uint16_t id : tokens) {
    if (!tokenizer.is_byte(id) && !tokenizer.is_textless(id)) ++occurs[id];
  }
  std::set<std::pair<int, int>, std::greater<>> sorted;
  for (const auto& [id, times] : occurs) sorted.emplace(times, id);
  std::set<int> ids;
  for (const auto& [times, id] : sorted)
    if (ids.size() < count) ids.insert(id);
  return ids;
}

TEST(TokenizerFit, LongerPiecesDoNot) {
  const std::string model = model_trained_on(english(), 400);
  const Tokenizer own = Tokenizer::from_bytes(model, "own");
  const std::vector<std::uint16_t> tokens = stream(own, english());
  for (const std::size_t count : {1u, 5u, 41u}) {
    const std::set<int> chosen = frequent(own, tokens, count);
    const std::string longer = with_pieces(model, [&](int id, const std::string& piece) {
      return chosen.contains(id) ? piece + "ingly" : piece;
    });
    EXPECT_FALSE(tokenizer_fit(longer, tokens).fits()) << count;
  }
}

}  // namespace
}  // namespace mulligan::data_tokenizer_fit_test
