// A tokenizer's compiled character map is checked before SentencePiece follows it.
#include "framework/data/exact_encoding.h"

#include <gtest/gtest.h>

#include "tests/unit/tokenizer_support.h"

namespace mulligan::data_character_map_test {
namespace {

std::string number(std::uint32_t value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

// A model with nothing but a normaliser (field 3) whose map (field 2) has these units and texts.
std::string model_of(const std::vector<std::uint32_t>& units, const std::string& texts) {
  std::string trie;
  for (const std::uint32_t unit : units) trie += number(unit);
  return field_bytes(3, field_bytes(2, number(static_cast<std::uint32_t>(trie.size())) + trie + texts));
}

const std::string kTexts("a\0b\0", 4);

TEST(CharacterMap, ASoundMapOrNoneHasNoProblem) {
  EXPECT_EQ(character_map_problem(""), "");
  EXPECT_EQ(character_map_problem(field_bytes(3, field_bytes(1, "identity") + field_bytes(2, ""))), "");
  std::vector<std::uint32_t> units(256);
  EXPECT_EQ(character_map_problem(model_of(units, kTexts)), "");
  units[7] = 3u << 10 | 1u << 8;  // goes to place 7 ^ 3, which has a value
  units[4] = 1u << 31 | 2u;       // the text "b"
  EXPECT_EQ(character_map_problem(model_of(units, kTexts)), "");
}

TEST(CharacterMap, APlaceBeyondTheTrieIsFound) {
  std::vector<std::uint32_t> units(256);
  units[9] = 256u << 10;
  EXPECT_NE(character_map_problem(model_of(units, kTexts)), "");
  EXPECT_NE(character_map_problem(model_of(std::vector<std::uint32_t>(255), kTexts)), "");
}

TEST(CharacterMap, AValueBeyondTheTextsIsFound) {
  std::vector<std::uint32_t> units(256);
  units[9] = 1u << 31 | 4u;
  EXPECT_NE(character_map_problem(model_of(units, kTexts)), "");
  units[9] = 8u << 10 | 1u << 8;  // its value lies at place 1, which holds a large number
  units[1] = 5u << 10;
  EXPECT_NE(character_map_problem(model_of(units, kTexts)), "");
}

TEST(CharacterMap, TextsThatDoNotEndAreFound) {
  EXPECT_NE(character_map_problem(model_of(std::vector<std::uint32_t>(256), "ab")), "");
  EXPECT_NE(character_map_problem(model_of(std::vector<std::uint32_t>(256), "")), "");
  EXPECT_NE(character_map_problem(field_bytes(3, field_bytes(2, "ab"))), "");
  EXPECT_NE(character_map_problem(field_bytes(5, field_bytes(2, "ab"))), "") << "of the way back";
  EXPECT_NE(character_map_problem(field_bytes(3, field_bytes(2, number(4'000'000'000u) + "abcdefgh"))), "");
}

TEST(CharacterMap, NothingHidesBehindAFieldThatIsNotUnderstood) {
  const std::string group("\x0b\x0c", 2);  // an empty group, which SentencePiece passes over
  const std::string damaged = field_bytes(3, field_bytes(2, "ab"));
  EXPECT_NE(character_map_problem(group + damaged), "");
  EXPECT_NE(character_map_problem(field_bytes(3, group + field_bytes(2, "ab"))), "");
  EXPECT_NE(character_map_problem(damaged.substr(0, damaged.size() - 1)), "");
}

}  // namespace
}  // namespace mulligan::data_character_map_test
