// Text is kept to the byte: whatever a document holds, its tokens spell it, and both byte counters count it. A tokenizer's
// compiled character map is checked before SentencePiece follows it.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <utility>

#include "framework/data/byte_count.h"
#include "framework/data/exact_encoding.h"
#include "framework/data/tokenizer.h"
#include "tests/unit/data_support.h"
#include "tests/unit/tokenizer_support.h"

namespace mulligan::data_exact_text_test {
namespace {

using namespace std::string_literals;

// A Python file: indentation, tabs, blank lines, comments, some of them with Windows line ends.
std::string python_file(int i) {
  const std::string end = i % 4 == 0 ? "\r\n" : "\n";
  std::string text = "#!/usr/bin/env python3" + end + end + "import os, sys" + end + end;
  for (int f = 0; f < 3 + i % 5; ++f) {
    text += "def function_" + std::to_string(i * 7 + f) + "(argument, *rest):" + end;
    text += "    \"\"\"Returns the sum.  Two spaces,   three.\"\"\"" + end;
    text += (i % 3 == 0 ? "\tif argument:" : "    if argument:") + end;
    text += "        for x in rest:   # caf\xC3\xA9" + end + end + "            yield x ** " +
            std::to_string(f) + end;
    text += "    return [a for a in b]   " + end + end + end;
  }
  return i % 2 == 0 ? text : text + "   ";
}

std::vector<std::string> python_files() {
  std::vector<std::string> files;
  for (int i = 0; i < 40; ++i) files.push_back(python_file(i));
  return files;
}

const Tokenizer& tokenizer() {
  static const Tokenizer trained = Tokenizer::from_bytes(model_trained_on(python_files(), 400), "test model");
  return trained;
}

std::vector<std::uint16_t> document_of(const std::vector<int>& ids) {
  std::vector<std::uint16_t> document{static_cast<std::uint16_t>(tokenizer().bos_id())};
  for (const int id : ids) document.push_back(static_cast<std::uint16_t>(id));
  return document;
}

void expect_bytes(const std::vector<std::uint16_t>& stream, std::size_t bytes) {
  static const ByteTable table = ByteTable::from_tokenizer(tokenizer());
  ASSERT_EQ(table.count(stream), bytes);
  ASSERT_EQ(count_bytes_by_decoding(tokenizer(), stream, 1), bytes);
}

// Its tokens spell the text, and both counters count its bytes.
void expect_kept(const std::string& text) {
  const std::vector<std::uint16_t> document = document_of(tokenizer().encode(text));
  ASSERT_EQ(tokenizer().document_text(document), text);
  expect_bytes(document, text.size());
}

TEST(ExactText, KeepsPythonFiles) {
  ASSERT_TRUE(tokenizer().keeps_text());
  for (const std::string& file : python_files()) expect_kept(file);
  // Indentation has pieces of its own, and so do line ends.
  EXPECT_GE(tokenizer().find(std::string(kSpaceMark) + std::string(kSpaceMark)), 0);
  EXPECT_GE(tokenizer().find("\n"), 0);
}

TEST(ExactText, KeepsWhatSentencePieceAloneWouldChange) {
  std::vector<std::uint16_t> stream;
  std::size_t bytes = 0;
  for (const std::string& text : {
           "the lazy dog"s,
           "Emoji \xF0\x9F\x98\x80\xF0\x9F\x9A\x80 and \xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7 done"s,
           "\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E \xE3\x81\xA8 English"s,
           "3.14159, 1,000,000!"s,
           "\xE2\x96\x88 block, next to the space mark"s,
           " one leading space"s,
           "   \n\t leading and trailing blanks \t \n  "s,
           " "s,
           "\n"s,
           "\r\n\r\n\r\n\r\n"s,
           "a\0b\0\0c"s,
           "\0"s,
           "the space mark \xE2\x96\x81 itself, \xE2\x96\x81\xE2\x96\x81 twice"s,
           "\xE2\x96\x81"s,
           " \xE2\x96\x81 "s,
           "SentencePiece's rare mark \xE2\x96\x85 and \xEF\xBF\xBD"s,
           "\xEF\xBB\xBF"
           "byte order mark"s,
           "lone \x80 cut \xE2\x82 overlong \xC0\xAF surrogate \xED\xA0\x80 beyond \xF4\x90\x80\x80 \xFF"s,
           "\xFF leading"s,
           "\xE2\x82"s,
           "<s></s><unk><pad><0x41> are text"s,
           "\x1B[31mcontrol\x07\x7F\xC2\x85"s,
           "full width \xEF\xBC\xA1, ligature \xEF\xAC\x81, no-break\xC2\xA0space, a\xCC\x88"s,
       }) {
    SCOPED_TRACE(text);
    expect_kept(text);
    std::ranges::copy(document_of(tokenizer().encode(text)), std::back_inserter(stream));
    bytes += text.size();
  }
  expect_bytes(stream, bytes);
}

TEST(ExactText, KeepsRandomBytes) {
  std::mt19937 random(11);
  std::uniform_int_distribution<int> length(1, 400), any(0, 255), choice(0, 11);
  const std::vector<std::string> fragments{" ",        "  ",   "\t",  "\n", "\r\n", "\xE2\x96\x81",
                                           "\xE2\x96", "def ", "    "};
  for (int round = 0; round < 400; ++round) {
    std::string text;
    for (int i = length(random); i > 0; --i) {
      const auto which = static_cast<std::size_t>(choice(random));
      text += which < fragments.size() ? fragments[which] : std::string(1, static_cast<char>(any(random)));
    }
    expect_kept(text);
  }
}

// The parts of a text have the tokens of the whole, wherever a cut is asked for; so may long texts be cut.
TEST(ExactText, CutsChangeNoToken) {
  std::string text;
  for (int i = 0; i < 6; ++i) text += python_file(i);
  text += "\xFF\x80\xE2\x96\x81  \xE2\x96\x81" + python_file(7) + "\xF0\x9F\x98\x80\xF0\x9F\x98\x80";
  ASSERT_LT(text.size(), std::size_t{1} << 14) << "encode() must not cut it itself";
  const std::vector<int> whole = tokenizer().encode(text);
  for (std::size_t step = 1; step < 200; step += 1 + step / 8) {
    std::vector<int> parts;
    std::string_view rest = text;
    std::size_t cuts = 0;
    while (!rest.empty()) {
      const std::size_t length = tokenizer().cut_after(rest, step);
      const std::vector<int> ids =
          tokenizer().encode_part(rest.substr(0, length), rest.size() == text.size());
      parts.insert(parts.end(), ids.begin(), ids.end());
      rest.remove_prefix(length);
      ++cuts;
    }
    ASSERT_EQ(parts, whole) << "cut every " << step;
    EXPECT_GT(cuts, text.size() / step / 40);
  }
  // Longer than what is handed over at once.
  std::string longer;
  while (longer.size() < 100'000) longer += text;
  expect_kept(longer);
}

TEST(ExactText, ATokenizerOfAnotherKindIsKnownAsSuch) {
  const std::string rewriting = model_trained_on(python_files(), 400, "nmt_nfkc");
  EXPECT_FALSE(model_rules(rewriting).keeps_text);
  EXPECT_TRUE(model_rules(rewriting).pair_merges);
  const Tokenizer loaded = Tokenizer::from_bytes(rewriting, "rewriting model");
  EXPECT_FALSE(loaded.keeps_text());
  EXPECT_EQ(loaded.cut_after("several words", 1), 13u) << "its texts are never cut";
  EXPECT_FALSE(model_rules("").keeps_text);
  EXPECT_FALSE(model_rules("\x12\xFF\xFF\xFF\xFF\xFF\xFF").keeps_text);
  sentence_of(ExitCode::bad_configuration, [] { model_trained_on({"text"}, 300, "nfd"); });
}

// The trainer leaves out whole sentences with its reserved character; it may not cost their text.
TEST(ExactText, TrainsOnTextAroundReservedCharacters) {
  std::vector<std::string> texts;
  for (int i = 0; i < 30; ++i) {
    texts.push_back("reserved \xE2\x96\x85 wording\0 of \xFF wording \xE2\x96\x81 wording <s> wording"s);
  }
  const Tokenizer trained = Tokenizer::from_bytes(model_trained_on(texts, 300), "reserved");
  EXPECT_GE(trained.find(std::string(kSpaceMark) + "wording"), 0);
}

std::string number(std::uint32_t value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

// A model with nothing but a normaliser (field 3) whose character map (field 2) has these units and texts.
std::string model_of(const std::vector<std::uint32_t>& units, const std::string& texts = "a\0b\0"s) {
  std::string trie;
  for (const std::uint32_t unit : units) trie += number(unit);
  return field_bytes(3, field_bytes(2, number(static_cast<std::uint32_t>(trie.size())) + trie + texts));
}

TEST(CharacterMap, ASoundOneOrNoneHasNoProblem) {
  EXPECT_EQ(character_map_problem(""), "");
  EXPECT_EQ(character_map_problem(field_bytes(3, field_bytes(1, "identity") + field_bytes(2, ""))), "");
  std::vector<std::uint32_t> units(256);
  EXPECT_EQ(character_map_problem(model_of(units)), "");
  units[7] = 3u << 10 | 1u << 8;  // goes to place 7 ^ 3, which has a value
  units[4] = 1u << 31 | 2u;       // the text "b"
  EXPECT_EQ(character_map_problem(model_of(units)), "");
}

TEST(CharacterMap, ADamagedOneIsFound) {
  std::vector<std::uint32_t> zeros(256), beyond(256), value(256), distant(256);
  beyond[9] = 256u << 10;
  value[9] = 1u << 31 | 4u;
  distant[9] = 8u << 10 | 1u << 8;  // its value lies at place 1, which holds a large number
  distant[1] = 5u << 10;
  const std::string two_bytes = field_bytes(2, "ab"), damaged = field_bytes(3, two_bytes);
  const std::string group("\x0b\x0c", 2);  // an empty group, which SentencePiece passes over
  const std::pair<const char*, std::string> models[] = {
      {"a place beyond the trie", model_of(beyond)},
      {"a trie of less than 256 places", model_of(std::vector<std::uint32_t>(255))},
      {"a value beyond the texts", model_of(value)},
      {"a value beyond the texts, at another place", model_of(distant)},
      {"texts that do not end", model_of(zeros, "ab")},
      {"no texts", model_of(zeros, "")},
      {"a map of two bytes", damaged},
      {"the same of the way back", field_bytes(5, two_bytes)},
      {"a trie longer than the map", field_bytes(3, field_bytes(2, number(4'000'000'000u) + "abcdefgh"))},
      {"after a field that is not understood", group + damaged},
      {"the same within the normaliser", field_bytes(3, group + two_bytes)},
      {"cut off", damaged.substr(0, damaged.size() - 1)}};
  for (const auto& [what, model] : models) EXPECT_NE(character_map_problem(model), "") << what;
}

}  // namespace
}  // namespace mulligan::data_exact_text_test
