// Ablation of symbols: what is found, what becomes of it, and that nothing else changes.
#include "tools/prepare/ablate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tests/support/long_tests.h"
#include "tests/unit/data_support.h"
#include "tools/prepare/encode_documents.h"
#include "tools/prepare/prepare.h"

namespace mulligan::data_ablate_test {
namespace {

namespace fs = std::filesystem;

std::string ablated(std::string_view text, const std::string& classes,
                    AblationMode mode = AblationMode::remove, double probability = 1,
                    SymbolCounts* counts = nullptr) {
  AblationRules rules;
  rules.classes = parse_symbol_classes(classes);
  rules.mode = mode;
  rules.probability = probability;
  SymbolCounts taken{};
  std::string out = ablate(text, rules, taken);
  if (counts != nullptr) *counts = taken;
  return out;
}

TEST(Ablation, FindsEachClass) {
  EXPECT_EQ(ablated("a $x+1$ b $$y$$ c \\(z\\) d \\[w\\] e \\frac{a{b}}{c} f", "latex"),
            "a  b  c  d  e {c} f");
  EXPECT_EQ(ablated("in 1984 or 3.14", "digits"), "in  or .");
  EXPECT_EQ(ablated("1 + 2 = 3 \u2264 4 \u00D7 5, well-known", "operators"), "1  2  3  4  5, well-known");
  EXPECT_EQ(ablated("the \u03B1\u03B2 and \u03A9 of it", "greek"), "the  and  of it");
  EXPECT_EQ(ablated("$5 and 6", "digits,latex"), "$ and ") << "one dollar begins no formula";
}

TEST(Ablation, WhatHasNoEndIsNoFormula) {
  for (const char* text : {"costs $5 only", "a \\(b", "$", "$$", "$$$", "\\", "\\cmd", "\\cmd{a",
                           "\\cmd{a\n\nb}", "it costs $5\n\nand then $6", "\\$5\\$"}) {
    EXPECT_EQ(ablated(text, "latex"), text);
  }
  EXPECT_EQ(ablated("", "latex,digits,operators,greek"), "");
  EXPECT_EQ(ablated("\xFF\xFE 1", "digits,greek,operators"), "\xFF\xFE ") << "bytes that are no UTF-8 stay";
}

TEST(Ablation, AFormulaOfAPageIsNone) {
  const std::string filling(5000, 'x');
  for (const std::string& text : {"$" + filling + "$", "\\(" + filling + "\\)", "\\cmd{" + filling + "}"}) {
    EXPECT_EQ(ablated(text, "latex"), text);
  }
  std::string openings;
  // Were each looked for to the end of the text, this would take ten times as long.
  for (int i = 0; i < (long_tests() ? 100'000 : 25'000); ++i) openings += "\\(\\a{";
  EXPECT_EQ(ablated(openings, "latex"), openings);
}

TEST(Ablation, AMaskKeepsTheClassOfLengths) {
  EXPECT_EQ(ablated("7 77 777 7777 77777", "digits", AblationMode::mask),
            "\u25A1 \u25A1\u25A1 \u25A1\u25A1 \u25A1\u25A1\u25A1\u25A1 \u25A1\u25A1\u25A1\u25A1");
}

TEST(Ablation, OutOfContextSymbolsChangePlacesAndNoneIsLost) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += std::to_string(100 + i) + (i % 2 == 0 ? " + " : " = ");
  const std::string moved = ablated(text, "digits,operators", AblationMode::decontext);
  EXPECT_NE(moved, text);
  std::string sorted = text, moved_sorted = moved;
  std::ranges::sort(sorted);
  std::ranges::sort(moved_sorted);
  EXPECT_EQ(moved_sorted, sorted);
  for (std::size_t i = 0; i + 5 < text.size(); i += 6)
    EXPECT_TRUE(moved[i + 4] == '+' || moved[i + 4] == '=');
}

TEST(Ablation, TheChoiceFollowsFromSeedAndTextAlone) {
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "x 7 ";
  SymbolCounts taken{};
  const std::string some = ablated(text, "digits", AblationMode::remove, 0.25, &taken);
  EXPECT_EQ(ablated(text, "digits", AblationMode::remove, 0.25), some);
  EXPECT_NEAR(static_cast<double>(taken[1]), 500, 4 * std::sqrt(2000 * 0.25 * 0.75));
  EXPECT_EQ(text.size() - some.size(), taken[1]);
  EXPECT_EQ(ablated(text, "digits", AblationMode::remove, 0), text);
}

TEST(Ablation, WordsThatMeanNothingAreRefused) {
  for (const char* words : {"", "digit", "digits,digits", "digits,", "latex;greek"})
    EXPECT_THROW(parse_symbol_classes(words), Error) << words;
  EXPECT_THROW(parse_ablation_mode("drop"), Error);
}

TEST(SymbolStatistics, TemplatesOfLines) {
  EXPECT_EQ(line_template("let v2 = 3.14;"), "x x = 0.0;");
  EXPECT_EQ(line_template("  a_b(c9, 10)"), "  x(x, 0)");
  EXPECT_EQ(line_template("caf\u00E9 12ab"), "x 0x");
  EXPECT_EQ(line_template(""), "");
}

class AblatedData : public testing::Test {
 protected:
  static PrepareSummary prepared(const std::string& name, const AblationRules& rules, bool symbols = false) {
    const fs::path text = fresh_folder("ablation_text"), data = fresh_folder("ablation_" + name);
    for (int i = 0; i < 40; ++i) {
      write_file_atomically(text / (std::to_string(i) + ".txt"),
                            "Document " + std::to_string(i * 37) + " says that a + b = c\u00B2 for " +
                                std::to_string(i) + " values of \u03B1, and the cat walks home again.\n");
    }
    fs::remove_all(data);
    PrepareOptions options;
    options.inputs = {text};
    options.output = data;
    options.vocab_size = 320;
    options.validation_documents = 10;
    options.ablation = rules;
    options.symbol_statistics = symbols;
    return prepare(options);
  }
};

TEST_F(AblatedData, TheManifestSaysWhatWasTakenAndTheRestIsAsWithout) {
  AblationRules digits;
  digits.classes = {SymbolClass::digits};
  const Manifest plain = prepared("plain", {}).manifest, without = prepared("train", digits).manifest;
  EXPECT_FALSE(plain.ablation);
  ASSERT_TRUE(without.ablation);
  EXPECT_TRUE(without.ablation->comparable);
  EXPECT_FALSE(without.ablation->validation);
  EXPECT_EQ(without.tokenizer_sha256, plain.tokenizer_sha256);
  EXPECT_EQ(without.validation.shards.front().sha256, plain.validation.shards.front().sha256);
  EXPECT_EQ(without.ablation->train.bytes_before, plain.train.bytes);
  EXPECT_EQ(without.ablation->train.bytes_after, without.train.bytes);
  EXPECT_EQ(without.ablation->train.tokens_before, plain.train.tokens);
  EXPECT_EQ(without.ablation->train.tokens_after, without.train.tokens);
  EXPECT_EQ(without.ablation->train.documents, 30u);
  EXPECT_EQ(without.ablation->taken.at("digits"), 60u);
  EXPECT_FALSE(without.text.kept);
  EXPECT_EQ(without.text.documents_changed_by_tokenizer, 0u);

  const Manifest read = load_manifest(fs::path(testing::TempDir()) / "mulligan_ablation_train");
  EXPECT_EQ(read.ablation->train.tokens_after, without.ablation->train.tokens_after);
  EXPECT_EQ(read.ablation->taken, without.ablation->taken);
}

// Each document has one line of one template (two digits, one of +, =, and one of the Greek letters), whatever was ablated.
TEST_F(AblatedData, SymbolsAndTemplatesAreCounted) {
  AblationRules digits;
  digits.classes = {SymbolClass::digits};
  for (const AblationRules& rules : {AblationRules{}, digits}) {
    const Manifest manifest = prepared("counted", rules, true).manifest;
    ASSERT_TRUE(manifest.symbols);
    const double tokens = static_cast<double>(manifest.ablation ? manifest.ablation->train.tokens_before
                                                                : manifest.train.tokens);
    EXPECT_DOUBLE_EQ(manifest.symbols->per_1000_tokens.at("digits"), 1000 * 30 * 2 / tokens);
    EXPECT_DOUBLE_EQ(manifest.symbols->per_1000_tokens.at("operators"), 1000 * 30 * 2 / tokens);
    EXPECT_DOUBLE_EQ(manifest.symbols->per_1000_tokens.at("greek"), 1000 * 30 * 1 / tokens);
    EXPECT_EQ(manifest.symbols->per_1000_tokens.at("latex"), 0);
    EXPECT_EQ(manifest.symbols->lines, 30u);
    EXPECT_EQ(manifest.symbols->templates, 1u);
    const Manifest read = load_manifest(fs::path(testing::TempDir()) / "mulligan_ablation_counted");
    EXPECT_EQ(read.symbols->per_1000_tokens, manifest.symbols->per_1000_tokens);
    EXPECT_EQ(read.symbols->templates, 1u);
  }
  EXPECT_FALSE(prepared("uncounted", {}).manifest.symbols);
}

// Documents 10 to 19 are the domain; the texts of all others stay.
TEST_F(AblatedData, DocumentsOfOtherDomainsStayAsTheyAre) {
  AblationRules rules;
  rules.classes = {SymbolClass::digits};
  rules.domains = {"*/1?.txt"};
  const PrepareSummary some = prepared("domain", rules);
  const Manifest all = [&] {
    AblationRules everywhere = rules;
    everywhere.domains = {};
    return prepared("everywhere", everywhere).manifest;
  }();
  ASSERT_TRUE(some.manifest.ablation);
  EXPECT_GT(some.manifest.ablation->train.documents, 0u);
  EXPECT_LE(some.manifest.ablation->train.documents, 10u);
  EXPECT_LT(some.manifest.ablation->train.documents, all.ablation->train.documents);
  EXPECT_EQ(some.manifest.ablation->taken.at("digits"), 2 * some.manifest.ablation->train.documents);
  for (const DocumentChange& change : some.changes)
    EXPECT_TRUE(rules.takes(change.document)) << change.document;
  EXPECT_EQ(load_manifest(fs::path(testing::TempDir()) / "mulligan_ablation_domain").ablation->domains,
            rules.domains);
  rules.domains.push_back("*/maths/*");
  EXPECT_THROW(prepared("nowhere", rules), Error);
}

TEST_F(AblatedData, AChangedValidationTextIsComparableOnlyWhereItIsMasked) {
  AblationRules rules;
  rules.classes = {SymbolClass::operators, SymbolClass::greek};
  rules.validation = true;
  const Manifest removed = prepared("removed", rules).manifest;
  EXPECT_FALSE(removed.ablation->comparable);
  ASSERT_TRUE(removed.ablation->validation);
  EXPECT_LT(removed.ablation->validation->bytes_after, removed.ablation->validation->bytes_before);
  rules.mode = AblationMode::mask;
  EXPECT_TRUE(prepared("masked", rules).manifest.ablation->comparable);
}

}  // namespace
}  // namespace mulligan::data_ablate_test
