// The settings of an evaluation survive their text, and damaged text is an error of one sentence.
#include <gtest/gtest.h>

#include "framework/artifact/evaluation_settings.h"
#include "framework/core/error.h"

namespace mulligan::artifact_settings_test {
namespace {

EvaluationSettings settings_of_all_kinds() {
  EvaluationSettings settings;
  settings.model.layers = 7;
  settings.model.softcap = 0.1;
  settings.model.loop.extra_passes = 2;
  settings.model.lanes.final_lane = FinalLane::attention;
  settings.elements = {{"smear_gate.window", ConfigValue(std::int64_t{12})},
                       {"masking.share", ConfigValue(0.25)}};
  settings.eval.tokens = 1234567890123;
  settings.seed = -5;
  settings.backend = {
      "backend", "cpu", {{"threads", ConfigValue(std::int64_t{0})}, {"cache", ConfigValue("")}}};
  settings.ttt.chunk_limits = {256, 2000};
  settings.ttt.chunk_sizes = {8, 24};
  settings.lr = 1e-4;
  settings.masters = {{3, true}, {1, false}};
  settings.adapters = {"ttt.adapters",
                       "doc_lora",
                       {{"taps", ConfigValue("q v")},
                        {"warm", ConfigValue(true)},
                        {"list", ConfigValue(ConfigValue::Reals{0.1, -2})}}};
  return settings;
}

TEST(EvaluationSettings, AreReadAsTheyWereWritten) {
  const std::string text = write_evaluation_settings(settings_of_all_kinds());
  const EvaluationSettings read = read_evaluation_settings(text);
  EXPECT_EQ(write_evaluation_settings(read), text);
  EXPECT_EQ(read.model.softcap, 0.1);
  EXPECT_EQ(read.model.lanes.final_lane, FinalLane::attention);
  EXPECT_EQ(read.model.elements.at("smear_gate.window").integer(), 12);
  EXPECT_EQ(read.ttt.chunk_sizes, (std::vector<double>{8, 24}));
  EXPECT_EQ(read.adapters, settings_of_all_kinds().adapters);
  EXPECT_TRUE(read.base.name.empty());
}

TEST(EvaluationSettings, DamagedTextIsAnErrorOfOneSentence) {
  const std::string text = write_evaluation_settings(settings_of_all_kinds());
  for (std::size_t length = 0; length < text.size(); ++length)
    EXPECT_THROW(read_evaluation_settings(text.substr(0, length)), Error) << length;
  EXPECT_THROW(read_evaluation_settings(text + "1\n"), Error);
  std::uint64_t state = 1;
  for (int round = 0; round < 1000; ++round) {
    std::string damaged = text;
    for (int i = 0; i < 3; ++i) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      damaged[(state >> 33) % damaged.size()] = static_cast<char>("\n0-9.x"[(state >> 20) % 6]);
    }
    try {
      read_evaluation_settings(damaged);
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("make it again"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace mulligan::artifact_settings_test
