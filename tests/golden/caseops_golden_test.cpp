// The text transform caseops against the public reference: texts and their inverses, token ids, original
// bytes of each token, and shards of whole documents. Everything exact.
#include <gtest/gtest.h>

#include <numeric>

#include "framework/core/file.h"
#include "framework/data/shard.h"
#include "framework/data/side_table.h"
#include "framework/data/text_transform.h"
#include "framework/data/transformed_encoding.h"
#include "tests/golden/golden_fixture.h"
#include "tests/unit/published_encoding.h"

namespace mulligan::caseops_golden_test {
namespace {

using nlohmann::json;

class CaseopsGolden : public testing::Test {
 protected:
  CaseopsGolden() : fixture_("caseops"), tokenizer_(Tokenizer::load(fixture_.folder() / "tokenizer.model")) {}

  // The part of a concatenation that belongs to one text.
  template <typename T>
  std::vector<T> part(const std::vector<T>& all, const std::vector<std::int32_t>& offsets,
                      std::size_t i) const {
    return {all.begin() + offsets.at(i), all.begin() + offsets.at(i + 1)};
  }
  std::string text_part(const char* name, std::size_t i) const {
    const std::vector<std::uint8_t> bytes =
        part(fixture_.bytes(std::string(name) + ".utf8"), fixture_.ints(std::string(name) + ".offsets"), i);
    return {bytes.begin(), bytes.end()};
  }
  std::size_t texts() const { return fixture_.manifest().at("texts").size(); }

  // The documents of docs.jsonl, whose lines are texts or objects with one.
  std::vector<std::string> documents() const {
    std::vector<std::string> all;
    std::istringstream lines(read_file(fixture_.folder() / "docs.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      if (line.empty()) continue;
      const json value = json::parse(line);
      all.push_back(value.is_object() ? value.at("text").get<std::string>() : value.get<std::string>());
    }
    return all;
  }

  GoldenFixture fixture_;
  Tokenizer tokenizer_;
  TextTransform caseops_;
};

TEST_F(CaseopsGolden, TransformsAndInverses) {
  ASSERT_GT(texts(), 0u);
  for (std::size_t i = 0; i < texts(); ++i) {
    const std::string original = fixture_.manifest().at("texts")[i];
    SCOPED_TRACE(original);
    EXPECT_EQ(text_part("original", i), original);
    const std::string transformed = caseops_.apply(original);
    EXPECT_EQ(transformed, text_part("transformed", i));
    EXPECT_EQ(caseops_.undo(transformed), original);
  }
}

TEST_F(CaseopsGolden, InverseOfForeignTexts) {
  const json& cases = fixture_.manifest().at("decode_cases");
  ASSERT_FALSE(cases.empty());
  for (const json& one : cases) {
    const std::string text = one.at("text");
    SCOPED_TRACE(one.dump());
    if (one.at("ok")) {
      EXPECT_EQ(caseops_.undo(text), one.at("decoded").get<std::string>());
    } else {
      EXPECT_THROW(caseops_.undo(text), Error);
    }
  }
}

TEST_F(CaseopsGolden, IdsAndOriginalBytes) {
  const std::vector<std::int32_t> ids = fixture_.ints("ids"), bytes = fixture_.ints("token_bytes"),
                                  offsets = fixture_.ints("ids.offsets");
  for (std::size_t i = 0; i < texts(); ++i) {
    const std::string original = fixture_.manifest().at("texts")[i];
    SCOPED_TRACE(original);
    const PublishedEncoding encoded = encode_published(tokenizer_, caseops_, original);
    EXPECT_EQ(std::vector<std::int32_t>(encoded.ids.begin(), encoded.ids.end()), part(ids, offsets, i));
    EXPECT_EQ(std::vector<std::int32_t>(encoded.bytes.begin(), encoded.bytes.end()), part(bytes, offsets, i));
    const json& info = fixture_.manifest().at("info")[i];
    const auto counted = std::accumulate(encoded.bytes.begin(), encoded.bytes.end(), std::uint64_t{0});
    EXPECT_EQ(counted, info.at("counted_bytes").get<std::uint64_t>());
    EXPECT_EQ(original.size() - counted, info.at("uncounted_bytes").get<std::uint64_t>());
    EXPECT_EQ(encode_document(tokenizer_, &caseops_, original, TextOrigin(original.size())).left_out,
              original.size() - counted);
  }
}

// What the tokens spell is what the reference decodes, where the normalisation left the inverse possible.
TEST_F(CaseopsGolden, TokensBackToText) {
  for (std::size_t i = 0; i < texts(); ++i) {
    const json& decoded = fixture_.manifest().at("info")[i].at("decoded");
    std::vector<std::uint16_t> ids;
    for (const std::int32_t id : part(fixture_.ints("ids"), fixture_.ints("ids.offsets"), i))
      ids.push_back(static_cast<std::uint16_t>(id));
    const std::string spelled = tokenizer_.document_text(ids);
    SCOPED_TRACE(fixture_.manifest().at("texts")[i].get<std::string>());
    if (decoded.is_null()) {
      EXPECT_THROW(caseops_.undo(spelled), Error) << "its normalisation cannot be undone";
    } else {
      EXPECT_EQ(caseops_.undo(spelled), decoded.get<std::string>());
    }
  }
}

// Documents as the published preparation writes them: the first so many are validation, the rest training.
TEST_F(CaseopsGolden, Shards) {
  const json& info = fixture_.manifest().at("docs");
  std::vector<std::uint16_t> validation, validation_bytes, train;
  std::size_t number = 0;
  for (const std::string& document : documents()) {
    const bool scored = number++ < info.at("val_docs").get<std::size_t>();
    const PublishedEncoding encoded = encode_published(tokenizer_, caseops_, document);
    auto& tokens = scored ? validation : train;
    tokens.push_back(static_cast<std::uint16_t>(tokenizer_.bos_id()));
    tokens.insert(tokens.end(), encoded.ids.begin(), encoded.ids.end());
    if (!scored) continue;
    validation_bytes.push_back(0);
    validation_bytes.insert(validation_bytes.end(), encoded.bytes.begin(), encoded.bytes.end());
  }
  EXPECT_EQ(number, info.at("n").get<std::size_t>());
  const std::string folder = (fixture_.folder() / "shards").string();
  EXPECT_EQ(train, read_tokens(find_shards({folder}, DataSplit::train)));
  const auto shards = find_shards({folder}, DataSplit::validation);
  EXPECT_EQ(shards, find_shards({folder + "/fineweb_val_*.bin"}, DataSplit::validation))
      << "a pattern leaves side tables out";
  EXPECT_EQ(validation, read_tokens(shards));
  const SideTable table = SideTable::load(find_side_tables("", shards), shards);
  EXPECT_EQ(table.count(validation), info.at("val_targets_bytes_total").get<std::uint64_t>());
  EXPECT_EQ(validation_bytes, read_tokens(find_files(folder, names_side_table)));
}

}  // namespace
}  // namespace mulligan::caseops_golden_test
