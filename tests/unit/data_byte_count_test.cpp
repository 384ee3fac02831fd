// Tokenizers: bytes by their table and by decoding agree (with the text itself: data_exact_text_test.cpp), training, and which one
// made the shards.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "framework/data/byte_count.h"
#include "framework/data/tokenizer.h"
#include "framework/data/tokenizer_fit.h"
#include "tests/unit/data_support.h"
#include "tests/unit/tokenizer_support.h"

namespace mulligan::data_byte_count_test {
namespace {

std::vector<std::string> plain_texts() {
  std::vector<std::string> texts;
  for (int i = 0; i < 40; ++i) {
    texts.push_back(
        "The quick brown fox number " + std::to_string(i * 37) +
        " jumps over the lazy dog, while several other animals were watching the whole performance closely.");
  }
  return texts;
}

const Tokenizer& tokenizer() {
  static const Tokenizer trained = Tokenizer::from_bytes(model_trained_on(plain_texts(), 330), "test model");
  return trained;
}

// Any order of any tokens, as a model might emit them.
TEST(ByteCount, BothRoutesAgreeOnRandomTokens) {
  const ByteTable table = ByteTable::from_tokenizer(tokenizer());
  std::mt19937 random(7);
  std::uniform_int_distribution<int> any(0, tokenizer().vocab_size() - 1);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::uint16_t> stream(50);
    for (auto& token : stream) token = static_cast<std::uint16_t>(any(random));
    ASSERT_EQ(count_bytes_by_decoding(tokenizer(), stream, 1), table.count(stream)) << "round " << round;
  }
  // Longer than a decoder run and a block, where the cuts fall inside documents.
  std::vector<std::uint16_t> longer(150'000);
  for (auto& token : longer) token = static_cast<std::uint16_t>(any(random));
  for (std::size_t i = 20'000; i < 60'000; ++i) longer[i] = static_cast<std::uint16_t>(300 + i % 30);
  EXPECT_EQ(count_bytes_by_decoding(tokenizer(), longer, 3), table.count(longer));
}

TEST(ByteCount, PaddedVocabulariesCountNothingForIdsWithoutPiece) {
  const int pieces = tokenizer().vocab_size();
  const ByteTable table = ByteTable::from_tokenizer(tokenizer(), pieces + 6);
  EXPECT_EQ(table.vocabulary(), pieces + 6);
  EXPECT_EQ(table.bytes(tokenizer().find(kSpaceMark), pieces + 5), 0);
  EXPECT_EQ(table.bytes(pieces + 5, tokenizer().find(kSpaceMark)), 0);
  sentence_of(ExitCode::bad_data, [&] { ByteTable::from_tokenizer(tokenizer(), pieces - 1); });
  const auto outside = std::vector<std::uint16_t>{1, static_cast<std::uint16_t>(pieces)};
  sentence_of(ExitCode::bad_data, [&] { count_bytes_by_decoding(tokenizer(), outside); });
  sentence_of(ExitCode::bad_data, [&] { ByteTable::from_tokenizer(tokenizer()).count(outside); });
}

TEST(TokenizerTraining, GivesTheExactSizeTheFixedIdsAndTheSameModelAgain) {
  const std::string model = model_trained_on(plain_texts(), 330);
  EXPECT_EQ(model, model_trained_on(plain_texts(), 330));
  EXPECT_EQ(tokenizer().vocab_size(), 330);
  EXPECT_EQ(tokenizer().bos_id(), 1);
  EXPECT_EQ(tokenizer().find("</s>"), 2);
  EXPECT_EQ(tokenizer().find("<unk>"), 3);
  EXPECT_EQ(tokenizer().find("<pad>"), 0);
  EXPECT_GE(tokenizer().find(kSpaceMark), 4);
  EXPECT_TRUE(tokenizer().is_byte(tokenizer().find("<0x00>")));
  EXPECT_TRUE(tokenizer().is_textless(0));
  EXPECT_NO_THROW(require_usable(tokenizer(), "test"));
}

TEST(TokenizerTraining, TurnsSentencePiecesRefusalsIntoSentences) {
  EXPECT_TRUE(
      refuses([] { model_trained_on({"just a few words"}, 4000); }, ExitCode::bad_data, "4000", "fewer"));
  EXPECT_TRUE(refuses([] { model_trained_on(plain_texts(), 200); }, ExitCode::bad_data, "200"));
  sentence_of(ExitCode::bad_configuration, [] { model_trained_on(plain_texts(), 65537); });
  sentence_of(ExitCode::bad_data, [] { model_trained_on({}, 300); });
  sentence_of(ExitCode::bad_data, [] { model_trained_on({" \n "}, 300); });
}

// Documents longer than one of SentencePiece's sentences are cut at white space or at a character.
TEST(TokenizerTraining, TakesLongDocuments) {
  std::string words;
  std::string unbroken;
  for (int i = 0; i < 9000; ++i) words += "abcd ";
  for (int i = 0; i < 9000; ++i) unbroken += "\xC3\xA9";
  const Tokenizer trained = Tokenizer::from_bytes(model_trained_on({words, "x" + unbroken}, 275), "long");
  EXPECT_GE(trained.find(std::string(kSpaceMark) + "abcd"), 0);
  EXPECT_GE(trained.find("\xC3\xA9\xC3\xA9"), 0);
}

TEST(Tokenizer, RefusesWhatIsNoModel) {
  sentence_of(ExitCode::bad_data, [] { Tokenizer::load("no/such/model"); });
  for (const std::string& bytes : {std::string(), std::string("not a model"), std::string(1000, '\0')}) {
    EXPECT_TRUE(refuses([&] { Tokenizer::from_bytes(bytes, "the file"); }, ExitCode::bad_data, "the file"));
  }
}

// The tokenizer that made the shards is told from others: those of any other size, and those with longer pieces.
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
}  // namespace mulligan::data_byte_count_test
