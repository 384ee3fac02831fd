// Validation text in training data: found however it was cut, shuffled, spelled or changed here and there; and
// what honest texts have in common is none.
#include "framework/data/text_overlap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "framework/core/file.h"
#include "framework/core/philox.h"
#include "framework/data/shard.h"
#include "framework/data/text_units.h"
#include "framework/data/tokenizer.h"
#include "tests/unit/data_support.h"
#include "tools/prepare/prepare.h"

namespace mulligan::data_text_overlap_test {
namespace {

namespace fs = std::filesystem;

using Tokens = std::vector<std::uint16_t>;

constexpr std::uint16_t bos = 1;

// Sentences of drawn words; a notice of 60 words stands in front of each document where it is asked for.
std::string prose(int document, int words, bool notice = false) {
  const PhiloxStream random(static_cast<std::uint64_t>(document) + 1, "overlap/test");
  const auto word = [](std::uint64_t n) {
    std::string text;
    for (std::uint64_t rest = n * 2654435761 % 99991; rest > 0; rest /= 26)
      text += static_cast<char>('a' + rest % 26);
    return text;
  };
  std::string text;
  for (std::uint64_t i = 0; notice && i < 60; ++i) text += word(i + 7) + " ";
  for (int i = 0; i < words; ++i) {
    const double u = random.uniform(static_cast<std::uint64_t>(i));
    text += word(static_cast<std::uint64_t>(3000 * u * u) + 1) + (i % 12 == 11 ? ".\n" : " ");
  }
  return text;
}

// Training and validation text with a tokenizer of 400 pieces.
class TextOverlapTest : public testing::Test {
 protected:
  static constexpr int validation_documents = 20;

  static void SetUpTestSuite() {
    const fs::path texts = fresh_folder("text_overlap_texts"), scored = fresh_folder("text_overlap_scored");
    for (int i = 0; i < 120; ++i) write_file_atomically(texts / (std::to_string(i) + ".txt"), prose(i, 300));
    for (int i = 0; i < validation_documents; ++i)
      write_file_atomically(scored / (std::to_string(i) + ".txt"), prose(1000 + i, 300));
    PrepareOptions options;
    options.inputs = {texts};
    options.validation_inputs = {scored};
    options.output = folder() = fresh_folder("text_overlap");
    options.vocab_size = 400;
    options.threads = 2;
    prepare(options);
  }
  static fs::path& folder() {
    static fs::path folder;
    return folder;
  }

  Tokenizer tokenizer_ = Tokenizer::load(folder() / "tokenizer.model");
  std::vector<fs::path> training_ = find_shards({folder().string()}, DataSplit::train);
  std::vector<fs::path> validation_ = find_shards({folder().string()}, DataSplit::validation);

  std::vector<Tokens> documents() const {
    std::vector<Tokens> documents;
    for (const std::uint16_t token : read_tokens(validation_)) {
      if (token == bos) documents.emplace_back();
      documents.back().push_back(token);
    }
    return documents;
  }
  // These documents behind the training text, against the validation text.
  TextOverlap with(const std::vector<Tokens>& documents, const OverlapBudget& budget = {}) const {
    Tokens all = read_tokens(training_);
    for (const Tokens& document : documents) all.insert(all.end(), document.begin(), document.end());
    const fs::path shard = folder() / "mixed.bin";
    write_shard(shard, all);
    return measure_text_overlap({shard}, validation_, &tokenizer_, budget);
  }
  std::vector<Tokens> changed(std::uint64_t one_in) const {
    const PhiloxStream random(5, "overlap/change");
    std::vector<Tokens> documents = this->documents();
    std::uint64_t at = 0;
    for (Tokens& document : documents) {
      for (std::uint16_t& token : document) {
        ++at;
        if (token != bos && random.uniform(2 * at) < 1.0 / static_cast<double>(one_in))
          token = static_cast<std::uint16_t>(300 + 90 * random.uniform(2 * at + 1));
      }
    }
    return documents;
  }
  std::vector<Tokens> spelled(const std::function<std::string(std::string)>& change) const {
    std::vector<Tokens> documents;
    for (int i = 0; i < validation_documents; ++i) {
      Tokens& tokens = documents.emplace_back(Tokens{bos});
      for (const int id : tokenizer_.encode(change(prose(1000 + i, 300))))
        tokens.push_back(static_cast<std::uint16_t>(id));
    }
    return documents;
  }
};

TEST_F(TextOverlapTest, TextsOfOneLanguageHaveNothingInCommon) {
  const TextOverlap apart = measure_text_overlap(training_, validation_, &tokenizer_);
  EXPECT_LT(apart.similar, 0.02);
  EXPECT_EQ(apart.copied, 0);
  EXPECT_LT(apart.pieces, 0.05);
  EXPECT_EQ(apart.excess(), "");
  EXPECT_GT(apart.passages, 30);
  EXPECT_EQ(measure_text_overlap(training_, validation_, nullptr).excess(), "") << "by tokens";
}

TEST_F(TextOverlapTest, ACopyIsFoundWholeInAnyOrderAndCut) {
  std::vector<Tokens> documents = this->documents();
  std::ranges::reverse(documents);
  std::vector<fs::path> shards = training_;
  for (std::size_t i = 0; i < documents.size(); i += 7) {  // seven documents a shard
    Tokens some;
    for (std::size_t k = i; k < std::min(i + 7, documents.size()); ++k)
      some.insert(some.end(), documents[k].begin(), documents[k].end());
    shards.push_back(folder() / ("part" + std::to_string(i) + ".bin"));
    write_shard(shards.back(), some);
  }
  const TextOverlap copy = measure_text_overlap(shards, validation_, &tokenizer_);
  EXPECT_GT(copy.copied, 0.95);
  EXPECT_NE(copy.excess().find("of the validation text stands in the training data, more than 1 %"),
            std::string::npos)
      << copy.excess();
}

TEST_F(TextOverlapTest, AChangedTokenInFortyHidesNothing) {
  const TextOverlap overlap = with(changed(40));
  EXPECT_GT(overlap.similar, 0.8);
  EXPECT_NE(overlap.excess(), "");
}

TEST_F(TextOverlapTest, ManyChangedCopiesAreNoCommonPhrases) {
  std::vector<Tokens> copies;
  for (int i = 0; i < 6; ++i) std::ranges::copy(changed(40), std::back_inserter(copies));
  EXPECT_GT(with(copies).similar, 0.8);
}

// One token is another before a window of 24 letters would be whole, so that none of them is found.
TEST_F(TextOverlapTest, AChangeInEveryLongWindowHidesNothing) {
  const TextUnits units(&tokenizer_);
  std::vector<Tokens> documents = this->documents();
  std::uint64_t at = 0;
  for (Tokens& document : documents) {
    std::size_t whole = 0;
    for (std::uint16_t& token : document) {
      std::vector<std::uint8_t> letters;
      units.append(std::span(&token, 1), letters);
      whole += letters.size();
      if (whole < 24) continue;
      token = static_cast<std::uint16_t>(300 + 90 * PhiloxStream(6, "overlap/change").uniform(++at));
      whole = 0;
    }
  }
  const TextOverlap overlap = with(documents);
  EXPECT_GT(overlap.similar, 0.7);
  EXPECT_NE(overlap.excess(), "");
}

// A part of the documents three times and a little of each other passage once, which makes once the usual number.
TEST_F(TextOverlapTest, CopiesOfAPartAreNoCommonPhrasesNextToALittleOfTheRest) {
  const std::vector<Tokens> documents = this->documents();
  std::vector<Tokens> copies;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    if (i % 5 == 0) copies.insert(copies.end(), 3, documents[i]);
    if (i % 5 == 0) continue;
    for (std::size_t first = 0; first + 90 < documents[i].size(); first += 200)
      copies.emplace_back(documents[i].begin() + static_cast<std::ptrdiff_t>(first),
                          documents[i].begin() + static_cast<std::ptrdiff_t>(first + 90));
  }
  const TextOverlap overlap = with(copies);
  EXPECT_GT(overlap.similar, 0.15);
  EXPECT_NE(overlap.excess(), "");
}

TEST_F(TextOverlapTest, PrefixesOfDocuments) {
  std::vector<Tokens> documents = this->documents();
  for (Tokens& document : documents) document.resize(document.size() * 6 / 10);
  EXPECT_GT(with(documents).similar, 0.5);
  EXPECT_NE(with(documents).excess(), "");
}

TEST_F(TextOverlapTest, ShuffledPiecesOfSixtyTokens) {
  Tokens all;
  for (const Tokens& document : documents()) all.insert(all.end(), document.begin(), document.end());
  std::vector<Tokens> pieces;
  for (std::size_t i = 0; i < all.size(); i += 60)
    pieces.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(i),
                        all.begin() + static_cast<std::ptrdiff_t>(std::min(i + 60, all.size())));
  std::ranges::sort(pieces);
  EXPECT_GT(with(pieces).similar, 0.8);
}

// Too short for a window of 24 letters, and next to other pieces each time. Tokens have about two letters here.
TEST_F(TextOverlapTest, ShuffledPiecesOfTenToTwentyLetters) {
  const TextUnits units(&tokenizer_);
  for (const std::size_t least : {10, 12, 16, 19}) {
    std::vector<Tokens> pieces, all;
    for (const Tokens& document : documents()) {
      std::size_t letters = least;
      for (const std::uint16_t token : document) {
        if (letters >= least) pieces.emplace_back();
        if (letters >= least) letters = 0;
        std::vector<std::uint8_t> spelled;
        units.append(std::span(&token, 1), spelled);
        letters += spelled.size();
        pieces.back().push_back(token);
      }
    }
    for (std::uint64_t times = 0; times < 3; ++times) {
      const PhiloxStream random(times, "overlap/pieces");
      std::vector<std::pair<double, std::size_t>> order;
      for (std::size_t i = 0; i < pieces.size(); ++i) order.emplace_back(random.uniform(i), i);
      std::ranges::sort(order);
      for (const auto& [drawn, i] : order) all.push_back(pieces[i]);
    }
    const TextOverlap overlap = with(all);
    EXPECT_GT(overlap.pieces, 0.6) << least;
    EXPECT_NE(overlap.excess(), "") << least;
  }
}

TEST_F(TextOverlapTest, AnotherSpellingAndOtherTokensOfTheSameText) {
  const auto capitals = [](std::string text) {
    std::ranges::transform(text, text.begin(), [](char c) { return c >= 'a' && c <= 'z' ? c - 32 : c; });
    return text;
  };
  const auto one_line = [](std::string text) {
    std::ranges::replace(text, '\n', '\t');
    return text;
  };
  const auto shifted = [](const std::string& text) { return "q" + text; };
  for (const auto& change : {std::function<std::string(std::string)>(capitals), {one_line}, {shifted}})
    EXPECT_GT(with(spelled(change)).copied, 0.9);
}

TEST_F(TextOverlapTest, AFewDocumentsAreEnough) {
  std::vector<Tokens> documents = this->documents();
  documents.resize(3);
  EXPECT_NE(with(documents).excess(), "");
}

TEST_F(TextOverlapTest, TrainingOnValidationTextAloneIsSeenFromTheOtherSide) {
  Tokens little = documents().front();
  write_shard(folder() / "little.bin", little);
  const TextOverlap overlap = measure_text_overlap({folder() / "little.bin"}, validation_, &tokenizer_);
  EXPECT_GT(overlap.training, 0.9);
  EXPECT_LT(overlap.similar, 0.1);
  EXPECT_NE(overlap.excess(), "");
}

TEST_F(TextOverlapTest, ASampleSaysWhatItWouldSee) {
  OverlapBudget budget;
  budget.training = read_tokens(training_).size() * 3 / 4;
  const TextOverlap overlap = with(changed(40), budget);
  EXPECT_LT(overlap.training_read, overlap.training_tokens);
  EXPECT_NE(overlap.text().find("a sample"), std::string::npos) << overlap.text();
  EXPECT_GT(overlap.seen_from(), TextOverlap::similar_limit);
  EXPECT_LT(overlap.seen_from(), 1);
}

// Of much text a sample is compared, of either side. Were its places always the same, all between them could be leaked.
TEST_F(TextOverlapTest, NobodyKnowsWhatASampleReads) {
  constexpr std::size_t piece = 4096, pieces = 64;  // as they are read
  Tokens all, leaked;
  for (std::size_t i = 0; i < pieces; ++i) {
    Tokens text{bos};
    for (const int id : tokenizer_.encode(prose(2000 + static_cast<int>(i), 4000)))
      text.push_back(static_cast<std::uint16_t>(id));
    ASSERT_GE(text.size(), piece);
    text.resize(piece);
    all.insert(all.end(), text.begin(), text.end());
    // One of four, at equal distances, is not there.
    if (i % 4 != 2) leaked.insert(leaked.end(), text.begin(), text.end());
  }
  const fs::path validation = folder() / "sampled_val.bin", training = folder() / "sampled_train.bin";
  write_shard(validation, all);
  write_shard(training, leaked);
  OverlapBudget budget;
  budget.validation = pieces / 4 * piece;
  EXPECT_GT(measure_text_overlap({training}, {validation}, &tokenizer_, budget).similar, 0.2);
}

TEST_F(TextOverlapTest, JsonHoldsAllOfIt) {
  const TextOverlap overlap = with(changed(40));
  EXPECT_EQ(text_overlap_from_json(to_json(overlap)), overlap);
}

TEST(TextOverlap, ANoticeInFrontOfEveryDocumentIsNoOverlap) {
  const fs::path texts = fresh_folder("overlap_notice_texts");
  for (int i = 0; i < 100; ++i)
    write_file_atomically(texts / (std::to_string(i) + ".txt"), prose(i, 150, true));
  PrepareOptions options;
  options.inputs = {texts};
  options.output = fresh_folder("overlap_notice");
  options.vocab_size = 400;
  options.validation_fraction = 0.2;
  prepare(options);
  const Tokenizer tokenizer = Tokenizer::load(options.output / "tokenizer.model");
  const TextOverlap overlap =
      measure_text_overlap(find_shards({options.output.string()}, DataSplit::train),
                           find_shards({options.output.string()}, DataSplit::validation), &tokenizer);
  EXPECT_EQ(overlap.excess(), "") << overlap.text();
}

TEST(TextOverlap, SentencesOfASmallGrammarAreNotJudged) {
  const auto sentence = [](std::uint64_t n) {
    static constexpr const char* colours[] = {"red", "green", "blue", "black", "white"};
    static constexpr const char* animals[] = {"cat", "dog", "horse", "bird"};
    return std::string("The ") + colours[n % 5] + " " + animals[n / 5 % 4] + " walks to the " +
           colours[n / 20 % 5] + " near the " + animals[n / 100 % 4] + ". ";
  };
  const fs::path texts = fresh_folder("overlap_grammar_texts");
  for (std::uint64_t i = 0; i < 200; ++i) {
    const PhiloxStream random(i + 1, "overlap/grammar");
    std::string text;
    for (std::uint64_t k = 0; k < 10; ++k)
      text += sentence(static_cast<std::uint64_t>(400 * random.uniform(k)));
    write_file_atomically(texts / (std::to_string(i) + ".txt"), text);
  }
  PrepareOptions options;
  options.inputs = {texts};
  options.output = fresh_folder("overlap_grammar");
  options.vocab_size = 290;
  options.validation_documents = 20;
  options.drop_overlap = false;
  prepare(options);
  const Tokenizer tokenizer = Tokenizer::load(options.output / "tokenizer.model");
  const TextOverlap overlap =
      measure_text_overlap(find_shards({options.output.string()}, DataSplit::train),
                           find_shards({options.output.string()}, DataSplit::validation), &tokenizer);
  EXPECT_TRUE(overlap.known());
  EXPECT_EQ(overlap.passages, 0);
  EXPECT_EQ(overlap.excess(), "");
  EXPECT_NE(overlap.text().find("repeats itself"), std::string::npos) << overlap.text();
}

TEST(TextOverlap, NothingReadIsNothingKnown) {
  EXPECT_FALSE(TextOverlap{}.known());
  EXPECT_EQ(TextOverlap{}.excess(), "");
}

}  // namespace
}  // namespace mulligan::data_text_overlap_test
