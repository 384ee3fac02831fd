// Validation text in training data is found however it was cut, shuffled, spelled or changed here and there.
#include "framework/data/text_overlap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "framework/core/file.h"
#include "framework/core/philox.h"
#include "framework/data/manifest.h"
#include "framework/data/shard.h"
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
  // These documents after the training text, against the validation text.
  TextOverlap with(const std::vector<Tokens>& documents, const OverlapRanks& ranks = {}) const {
    Tokens all = read_tokens(training_);
    for (const Tokens& document : documents) all.insert(all.end(), document.begin(), document.end());
    const fs::path shard = folder() / "mixed.bin";
    write_shard(shard, all);
    return measure_text_overlap({shard}, validation_, &tokenizer_, ranks);
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
  EXPECT_EQ(apart.similar, 0);
  EXPECT_EQ(apart.duplicates, 0);
  EXPECT_EQ(apart.excess(), "");
  EXPECT_GT(apart.passages, 30u);
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
  EXPECT_EQ(copy.copied, 1);
  EXPECT_EQ(copy.duplicates, 1);
  EXPECT_TRUE(
      contains(copy.excess(), "100 % of the validation text stands in the training data as whole documents"));
}

TEST_F(TextOverlapTest, AChangedTokenInFortyHidesNothing) {
  const TextOverlap overlap = with(changed(40));
  EXPECT_GT(overlap.similar, 0.8);
  EXPECT_NE(overlap.excess(), "");
  EXPECT_EQ(text_overlap_from_json(to_json(overlap)), overlap);
  std::vector<Tokens> copies;
  for (int i = 0; i < 6; ++i) std::ranges::copy(changed(40), std::back_inserter(copies));
  EXPECT_GT(with(copies).similar, 0.8) << "many changed copies are no common phrases";
}

TEST_F(TextOverlapTest, ShuffledPiecesOfThreeHundredTokens) {
  Tokens all;
  for (const Tokens& document : documents()) all.insert(all.end(), document.begin(), document.end());
  std::vector<Tokens> pieces;
  for (std::size_t i = 0; i < all.size(); i += 300)
    pieces.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(i),
                        all.begin() + static_cast<std::ptrdiff_t>(std::min(i + 300, all.size())));
  std::ranges::sort(pieces);
  EXPECT_GT(with(pieces).similar, 0.8);
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

TEST_F(TextOverlapTest, PartsOfTheTextAreBeyondTheLimit) {
  std::vector<Tokens> documents = this->documents();
  const TextOverlap one = with({documents.front()});
  EXPECT_NEAR(one.duplicates, 0.05, 0.01);
  EXPECT_NE(one.excess(), "");
  EXPECT_NE(with({documents[0], documents[1], documents[2]}).excess(), "");
  std::ranges::reverse(documents);
  for (const std::size_t percent : {97, 60}) {  // of each document
    std::vector<Tokens> parts = documents;
    for (Tokens& document : parts) document.resize(document.size() * percent / 100);
    const TextOverlap overlap = with(parts);
    EXPECT_GT(overlap.similar, percent == 97 ? 0.95 : 0.5);
    EXPECT_EQ(overlap.duplicates, 0);
    EXPECT_TRUE(
        contains(overlap.excess(), "of the validation text stands in the training data, more than 1 %"));
  }
}

// A document is whole wherever the pieces end that threads and ranks read, and none is read twice.
TEST_F(TextOverlapTest, RanksFindTogetherWhatOneFinds) {
  std::vector<Tokens> documents;
  for (std::size_t tokens = 0; tokens < std::size_t{3} << 20;) {
    documents.push_back(Tokens{bos});
    for (const int id : tokenizer_.encode(prose(5000 + static_cast<int>(documents.size() % 50), 300)))
      documents.back().push_back(static_cast<std::uint16_t>(id));
    tokens += documents.back().size();
  }
  const std::vector<Tokens> scored = this->documents();
  for (std::size_t i = 0; i < scored.size() / 2; ++i)
    documents.insert(documents.begin() + static_cast<std::ptrdiff_t>(documents.size() * i / 10), scored[i]);
  const TextOverlap alone = with(documents);
  EXPECT_NEAR(alone.duplicates, 0.5, 0.05);
  std::vector<std::string> found(3);
  for (int pass = 0; pass < 2; ++pass) {
    for (int rank = 0; rank < 3; ++rank) {
      const TextOverlap overlap = with(documents, {rank, 3, [&](std::string_view own) {
                                                     found[static_cast<std::size_t>(rank)] = own;
                                                     return pass == 0 ? std::vector{std::string(own)} : found;
                                                   }});
      if (pass == 0) {
        EXPECT_LT(overlap.duplicates, 0.4) << "a third of it";
      } else {
        EXPECT_EQ(overlap, alone) << rank;
      }
    }
  }
}

TEST_F(TextOverlapTest, IsKnownFromTheManifestOrTheCache) {
  const fs::path cache = fresh_folder("overlap_cache");
  const char* before = std::getenv("XDG_CACHE_HOME");
  const std::string kept = before ? before : "";
  ::setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  const TextOverlap own = find_text_overlap(training_, validation_, &tokenizer_);
  EXPECT_EQ(own, load_manifest(folder()).overlap);
  EXPECT_TRUE(fs::is_empty(cache)) << "the manifest says it";
  const fs::path other = fresh_folder("overlap_no_manifest");
  fs::copy(training_.front(), other);
  fs::copy(validation_.front(), other);
  const auto find = [&] {
    return find_text_overlap(find_shards({other.string()}, DataSplit::train),
                             find_shards({other.string()}, DataSplit::validation), &tokenizer_);
  };
  EXPECT_EQ(find(), own);
  const fs::path file = fs::directory_iterator(cache / "mulligan" / "overlap")->path();
  TextOverlap changed = own;
  changed.similar = 0.25;
  write_file_atomically(file, to_json(changed).dump());
  EXPECT_EQ(find(), changed) << "read, not measured";
  write_file_atomically(file, "{\"share\": 7");
  EXPECT_EQ(find(), own) << "a damaged one is measured again";
  write_shard(other / "fineweb_train_000000.bin", read_tokens(validation_));
  EXPECT_EQ(find().copied, 1) << "other tokens are not known";
  if (before)
    ::setenv("XDG_CACHE_HOME", kept.c_str(), 1);
  else
    ::unsetenv("XDG_CACHE_HOME");
}

// Of 20 of the texts in a folder, and the others.
void expect_no_overlap(const fs::path& texts, int vocabulary) {
  PrepareOptions options;
  options.inputs = {texts};
  options.output = fresh_folder("overlap_none");
  options.vocab_size = vocabulary;
  options.validation_documents = 20;
  const std::optional<TextOverlap> overlap = prepare(options).manifest.overlap;
  EXPECT_EQ(overlap->excess(), "") << overlap->text();
}

TEST(TextOverlap, ANoticeInFrontOfEveryDocumentIsNoOverlap) {
  const fs::path texts = fresh_folder("overlap_notice_texts");
  for (int i = 0; i < 100; ++i)
    write_file_atomically(texts / (std::to_string(i) + ".txt"), prose(i, 150, true));
  expect_no_overlap(texts, 400);
}

TEST(TextOverlap, SentencesOfASmallGrammarAreNoOverlap) {
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
  expect_no_overlap(texts, 290);
}

// Text of `letters` letters, drawn.
std::string drawn(std::uint64_t stream, std::size_t length, const std::string& letters) {
  const PhiloxStream random(stream, "overlap/letters");
  std::string text;
  for (std::size_t i = 0; i < length; ++i)
    text += letters[static_cast<std::size_t>(random.uniform(i) * static_cast<double>(letters.size()))];
  return text;
}

Tokens bytes_of(const std::string& text) {
  Tokens tokens{bos};
  for (const char letter : text) tokens.push_back(static_cast<std::uint16_t>(letter));
  return tokens;
}

// Without a tokenizer a token is two letters, one of them always the same.
TEST(TextOverlap, FewLettersAreReadInLongerWindows) {
  for (const std::string letters : {"ACGT", "01"}) {
    const Tokens validation = bytes_of(drawn(1, 100'000, letters));
    OverlapMeter meter(nullptr, validation);
    for (std::uint64_t i = 2; i < 10; ++i)
      EXPECT_FALSE(meter.read(bytes_of(drawn(i, 100'000, letters)))) << letters;
    EXPECT_GT(meter.result().passages, 20u) << letters;
    EXPECT_EQ(meter.result().excess(), "") << letters;
    const auto half = std::span(validation).subspan(20'000, 50'000);
    EXPECT_TRUE(meter.read(half));
    EXPECT_NEAR(meter.result().copied, 0.5, 0.1) << letters;
  }
}

TEST(TextOverlap, WholeDocumentsCountWhereTextCannotBeJudged) {
  Tokens validation;
  for (std::uint64_t i = 0; i < 20; ++i) {
    const Tokens document = bytes_of(std::string(40 + i, 'a'));
    validation.insert(validation.end(), document.begin(), document.end());
  }
  OverlapMeter meter(nullptr, validation);
  EXPECT_FALSE(meter.read(bytes_of(std::string(200, 'a'))));
  EXPECT_EQ(meter.result().passages, 0u);
  EXPECT_EQ(meter.result().excess(), "");
  EXPECT_TRUE(meter.read(bytes_of(std::string(45, 'a'))));
  EXPECT_EQ(meter.result().duplicates, 0.05);
  EXPECT_NE(meter.result().excess(), "");
}

}  // namespace
}  // namespace mulligan::data_text_overlap_test
