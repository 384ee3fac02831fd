// Choosing a token from logits, and text that comes in pieces of characters.
#include "framework/eval/generate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "framework/core/utf8.h"

namespace mulligan::eval_sampling_test {
namespace {

const std::vector<float> logits = {0.5F, 2.0F, -1.0F, 2.0F, 1.0F};

TEST(ChooseToken, ZeroTemperatureAndTopOneTakeTheMostProbable) {
  for (std::uint64_t draw = 0; draw < 50; ++draw) {
    EXPECT_EQ(choose_token(logits, {0.0, 0, draw}, draw), 1);
    EXPECT_EQ(choose_token(logits, {1.0, 1, draw}, draw), 1);
  }
}

TEST(ChooseToken, DrawsFollowTheProbabilities) {
  constexpr int draws = 20000;
  double total = 0;
  for (const float logit : logits) total += std::exp(static_cast<double>(logit) / 0.7);
  std::vector<int> counts(logits.size());
  for (int draw = 0; draw < draws; ++draw)
    ++counts[static_cast<std::size_t>(choose_token(logits, {0.7, 0, 3}, static_cast<std::uint64_t>(draw)))];
  for (std::size_t token = 0; token < logits.size(); ++token) {
    const double p = std::exp(static_cast<double>(logits[token]) / 0.7) / total;
    EXPECT_NEAR(counts[token], draws * p, 4 * std::sqrt(draws * p * (1 - p)) + 1) << token;
  }
}

TEST(ChooseToken, TopKLeavesOutTheRestAndBreaksTiesByTheLowerToken) {
  std::set<int> two, three;
  for (std::uint64_t draw = 0; draw < 500; ++draw) {
    two.insert(choose_token(logits, {1.0, 2, 7}, draw));
    three.insert(choose_token(logits, {5.0, 3, 7}, draw));
  }
  EXPECT_EQ(two, (std::set<int>{1, 3}));
  EXPECT_EQ(three, (std::set<int>{1, 3, 4}));
}

TEST(TokenLoss, IsTheNegativeLogarithmOfTheProbability) {
  double sum = 0;
  for (int token = 0; token < 5; ++token) sum += std::exp(-token_loss_nats(logits, token));
  EXPECT_NEAR(sum, 1.0, 1e-12);
  EXPECT_NEAR(token_loss_nats(logits, 2) - token_loss_nats(logits, 1), 3.0, 1e-12);
  EXPECT_NEAR(token_loss_nats(std::vector<float>{3e4F, -3e4F}, 0), 0.0, 1e-12);
}

// Every way to cut a text gives the same characters, and never half of one.
TEST(Utf8Stream, GivesWholeCharactersHoweverBytesArrive) {
  const std::string text = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    Utf8Stream stream;
    const std::string first = stream.take(text.substr(0, cut));
    EXPECT_TRUE(text.starts_with(first)) << cut;
    EXPECT_TRUE(first.empty() || first.size() == text.size() ||
                (static_cast<unsigned char>(text[first.size()]) & 0xC0) != 0x80)
        << cut;
    const std::string second = stream.take(text.substr(cut));
    EXPECT_EQ(first + second + stream.finish(), text) << cut;
  }
}

TEST(Utf8Stream, WhatIsNoCharacterIsReplaced) {
  const std::string mark = "\xEF\xBF\xBD";
  const auto all = [](const std::string& bytes) {
    Utf8Stream stream;
    std::string text;
    for (const char byte : bytes) text += stream.take(std::string(1, byte));
    return text + stream.finish();
  };
  EXPECT_EQ(all("\x80x"), mark + "x");
  EXPECT_EQ(all("\xC0\xAF"), mark + mark);             // overlong
  EXPECT_EQ(all("\xED\xA0\x80"), mark + mark + mark);  // a surrogate
  EXPECT_EQ(all("\xF4\x90\x80\x80"), mark + mark + mark + mark);
  EXPECT_EQ(all("\xE2\x82x"), mark + "x");  // a character that breaks off
  EXPECT_EQ(all("x\xE2\x82"), "x" + mark);
}

}  // namespace
}  // namespace mulligan::eval_sampling_test
