// Calibration and consistency, computed on paper; files of questions and answers, and the comparison of runs.
#include "lab/calibration/calibration.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "framework/core/file.h"
#include "lab/calibration/answer.h"
#include "lab/calibration/compare_items.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/sentence.h"

namespace mulligan::calibration::calibration_test {
namespace {

const std::vector<Prediction> oracle = {{.95, true, 0}, {.85, false, 0}, {.65, true, 0}, {.55, false, 0}};

// Four predictions in ten bins: |1 - .95|, |0 - .85|, |1 - .65| and |0 - .55|, a quarter of each.
TEST(Calibration, Oracle) {
  const Calibration c = measure_calibration(oracle, 10);
  EXPECT_NEAR(c.ece, .45, 1e-12);
  EXPECT_NEAR(c.mce, .85, 1e-12);
  EXPECT_NEAR(c.brier, .2875, 1e-12);
  EXPECT_NEAR(c.swagger.value(), .70, 1e-12);
  EXPECT_NEAR(c.swagger_gap.value(), -.10, 1e-12);
  EXPECT_EQ(c.count, 4U);
  EXPECT_EQ(c.wrong, 2U);
  EXPECT_EQ(c.accuracy, .5);
  EXPECT_NEAR(c.confidence, .75, 1e-12);
  EXPECT_EQ(c.bins.size(), 10U);
}

// Two in each bin of equal mass: |.5 - .6| and |.5 - .9|, half of each.
TEST(Calibration, BinsOfEqualMass) {
  const Calibration c = measure_calibration(oracle, 2);
  EXPECT_NEAR(c.adaptive_ece, (.1 + .4) / 2, 1e-12);
  EXPECT_EQ(c.adaptive_bins[0].count, 2U);
  EXPECT_EQ(c.adaptive_bins[0].high, .65);
  EXPECT_EQ(measure_calibration(oracle, 15).adaptive_bins.size(), 4U);  // no more bins than predictions
  std::vector<Prediction> backwards(oracle.rbegin(), oracle.rend());
  EXPECT_EQ(measure_calibration(backwards, 2).adaptive_ece, c.adaptive_ece);
}

// (0, 0.1] holds 0.1, whatever 0.1 * 10 rounds to; 0 goes into the first and 1 into the last.
TEST(Calibration, EdgesBelongToTheBinBelow) {
  for (const int bins : {1, 3, 7, 10, 15}) {
    std::vector<Prediction> edges = {{0, true, 0}};
    for (int i = 1; i <= bins; ++i) edges.push_back({static_cast<double>(i) / bins, true, 0});
    const Calibration c = measure_calibration(edges, bins);
    EXPECT_EQ(c.bins[0].count, 2U);
    for (std::size_t i = 1; i < c.bins.size(); ++i) EXPECT_EQ(c.bins[i].count, 1U) << bins << " " << i;
  }
}

TEST(Calibration, NoWrongAnswersHaveNoSwagger) {
  const Calibration right = measure_calibration(std::vector<Prediction>{{.9, true, .1}, {.8, true, .3}});
  EXPECT_FALSE(right.swagger || right.swagger_gap);
  EXPECT_EQ(right.wrong, 0U);
  EXPECT_NEAR(right.loss_nats, .2, 1e-12);
  const Calibration wrong = measure_calibration(std::vector<Prediction>{{.9, false, 3}});
  EXPECT_EQ(wrong.swagger, .9);
  EXPECT_FALSE(wrong.swagger_gap);
}

TEST(Calibration, WhatIsNoPredictionIsRefused) {
  EXPECT_THROW(measure_calibration({}), std::invalid_argument);
  EXPECT_THROW(measure_calibration(oracle, 0), std::invalid_argument);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double confidence : {-.1, 1.1, nan}) {
    EXPECT_THROW(measure_calibration(std::vector<Prediction>{{confidence, true, 0}}), std::invalid_argument);
  }
}

TEST(Calibration, TheChoiceOfLogits) {
  const std::vector<double> logits = {std::log(.2), std::log(.5), std::log(.3)};
  const Choice right = choose(logits, 1), wrong = choose(logits, 2);
  EXPECT_EQ(right.choice, 1U);
  EXPECT_TRUE(right.prediction.right);
  EXPECT_NEAR(right.prediction.confidence, .5, 1e-12);
  EXPECT_NEAR(right.prediction.loss_nats, -std::log(.5), 1e-12);
  EXPECT_FALSE(wrong.prediction.right);
  EXPECT_NEAR(wrong.prediction.loss_nats, -std::log(.3), 1e-12);
  const std::vector<float> far = {-3e4F, 3e4F};  // where exp() would overflow
  EXPECT_EQ(choose(far, 0).prediction.confidence, 1);
  EXPECT_EQ(choose(far, 0).prediction.loss_nats, 6e4);
  const std::vector<float> equal = {1, 1, 1, 1};
  EXPECT_EQ(choose(equal, 3).choice, 0U);
  EXPECT_EQ(choose(equal, 3).prediction.confidence, .25);
  EXPECT_THROW(choose(std::vector<float>{1, std::numeric_limits<float>::quiet_NaN()}, 0),
               std::invalid_argument);
}

// Three runs on four items: all agree, two of three, none, all.
TEST(Consistency, ByHand) {
  const std::vector<std::vector<int>> answers = {{1, 2, 3, 4}, {1, 2, 5, 4}, {1, 9, 7, 4}};
  const Consistency c = consistency_of(answers);
  EXPECT_NEAR(c.mean_most_common, (1 + 2. / 3 + 1. / 3 + 1) / 4, 1e-12);
  EXPECT_NEAR(c.pairwise, (3 + 1 + 0 + 3) / 3. / 4, 1e-12);
  EXPECT_EQ(c.first_divergence, 1U);
  EXPECT_FALSE(consistency_of(std::vector<std::vector<int>>{{1, 2}, {1, 2}}).first_divergence);
  EXPECT_THROW(consistency_of(std::vector<std::vector<int>>{{1}}), std::invalid_argument);
  EXPECT_THROW(consistency_of(std::vector<std::vector<int>>{{1, 2}, {1}}), std::invalid_argument);
  EXPECT_THROW(consistency_of(std::vector<std::vector<int>>{{}, {}}), std::invalid_argument);
}

using test_support::ScratchFolder;

std::vector<Question> read_text(const std::string& text) {
  const ScratchFolder scratch;
  write_file_atomically(scratch / "set.jsonl", text);
  return read_questions(scratch / "set.jsonl");
}

TEST(Questions, AreReadWithTheirDefaults) {
  const auto questions = read_text(
      "{\"question\":\"a?\",\"choices\":[\"x\",\"y\"],\"answer\":1,\"extra\":[]}\n\n"
      "{\"id\":\"q\",\"subject\":\"law\",\"question\":\"b?\",\"choices\":[\"x\",\"y\",\"z\"],\"answer\":"
      "\"C\"}\r\n"
      "{\"id\":7,\"question\":\"\",\"choices\":[\"x\",\"y\"],\"answer\":0}");
  ASSERT_EQ(questions.size(), 3U);
  EXPECT_EQ(questions[0].id, "1");
  EXPECT_EQ(questions[0].answer, 1U);
  EXPECT_EQ(questions[1].subject, "law");
  EXPECT_EQ(questions[1].answer, 2U);
  EXPECT_EQ(questions[2].id, "7");
}

TEST(Questions, DamagedLinesAreRefusedByNumber) {
  const std::string good = "{\"question\":\"a?\",\"choices\":[\"x\",\"y\"],\"answer\":1}\n";
  for (const auto& [line, says] :
       {std::pair{"{", "not a JSON object"}, std::pair{"[]", "not a JSON object"},
        std::pair{R"({"choices":["x","y"],"answer":1})", "\"question\" is not a text"},
        std::pair{R"({"question":"a","choices":["x"],"answer":0})", "two or more"},
        std::pair{R"({"question":"a","choices":["x",""],"answer":0})", "or empty"},
        std::pair{R"({"question":"a","choices":["x",4],"answer":0})", "not a text"},
        std::pair{R"({"question":"a","choices":["x","y"],"answer":2})", "none of the 2 choices"},
        std::pair{R"({"question":"a","choices":["x","y"],"answer":-1})", "none of the 2 choices"},
        std::pair{R"({"question":"a","choices":["x","y"],"answer":"c"})", "none of the 2 choices"},
        std::pair{R"({"question":"a","choices":["x","y"]})", "none of the 2 choices"},
        std::pair{R"({"id":"1","question":"a","choices":["x","y"],"answer":0})", "stands there twice"}}) {
    const std::string sentence = sentence_of([&] { read_text(good + line); });
    EXPECT_TRUE(contains(sentence, says)) << line << ": " << sentence;
    EXPECT_TRUE(contains(sentence, "line 2"));
  }
  EXPECT_TRUE(refuses([] { read_text("\n"); }, "holds no question"));
}

ItemSet items_of(const std::vector<int>& choices, double confidence = 0.9) {
  ItemSet set{"set.jsonl", true, {}};
  for (std::size_t i = 0; i < choices.size(); ++i) {
    set.items.push_back(
        {std::to_string(i), i < 4 ? "law" : "art", choices[i], 0, {confidence, choices[i] == 0, 0.5}});
  }
  return set;
}

TEST(Items, AreReadAsTheyWereWritten) {
  const ScratchFolder scratch;
  const std::vector<ItemSet> sets = {items_of({0, 1, 2}),
                                     {"validation", false, {{"5", "", 300, 301, {1.0 / 3, false, 2.5}}}}};
  write_file_atomically(scratch / "items.jsonl", items_text(sets));
  const std::vector<ItemSet> read = read_items(scratch / "items.jsonl");
  EXPECT_EQ(items_text(read), items_text(sets));
  EXPECT_FALSE(read[1].questions);
  EXPECT_EQ(read[1].items[0].prediction.confidence, 1.0 / 3);
  write_file_atomically(scratch / "items.jsonl", items_text(sets) + "{\"set\":\"x\"}\n");
  EXPECT_TRUE(refuses([&] { read_items(scratch / "items.jsonl"); }, "line 5 is not an item"));
}

// Subjects have figures of their own, with counts; law: 2 of 4 right, art: 1 of 2.
TEST(Items, TablesBySubject) {
  const std::vector<ItemSet> sets = {items_of({0, 0, 1, 1, 0, 2})};
  const auto json = nlohmann::json::parse(calibration_json(sets, "weights"));
  const auto& subjects = json.at("sets").at(0).at("subjects");
  ASSERT_EQ(subjects.size(), 2U);
  EXPECT_EQ(subjects.at(0).at("name"), "law");
  EXPECT_EQ(subjects.at(0).at("items"), 4);
  EXPECT_EQ(subjects.at(0).at("wrong"), 2);
  EXPECT_NEAR(subjects.at(0).at("ece").get<double>(), .4, 1e-12);
}

// The second run loses four of six items: p = 2 / 2^4; by subject 2 / 2^3 and 1, which Holm doubles.
TEST(Items, RunsAgainstEachOther) {
  const auto compared = compare_items({{items_of({0, 0, 0, 0, 0, 0})}, {items_of({1, 1, 1, 0, 1, 0})}});
  ASSERT_EQ(compared.size(), 1U);
  const auto& rows = compared[0].subjects;
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].only_first, 4U);
  EXPECT_NEAR(rows[0].p, .125, 1e-12);
  EXPECT_NEAR(rows[1].p, .25, 1e-12);
  EXPECT_NEAR(rows[1].holm_p, .5, 1e-12);
  EXPECT_EQ(rows[2].p, 1);
  EXPECT_NEAR(compared[0].consistency.pairwise, 2. / 6, 1e-12);
  EXPECT_EQ(compared[0].consistency.first_divergence, 0U);
}

// Only an item that is consistent, sure and of a badly calibrated subject is flagged.
TEST(Items, AtRisk) {
  ItemSet set = items_of({0, 1, 1, 1, 0, 0}, 0.95);  // ECE of art .05
  set.items[2].prediction.confidence = .75;
  ItemSet other = set;
  other.items[1].choice = 2;
  const Risks risks = compare_items({{set}, {set}, {other}})[0].risks;
  EXPECT_EQ(risks.ids, (std::vector<std::string>{"0", "3"}));
  EXPECT_EQ(risks.precision, .5);
  EXPECT_EQ(compare_items({{set}, {set}, {other}}, {.6, .8, .1})[0].risks.ids,
            (std::vector<std::string>{"0", "1", "3"}));
  EXPECT_NEAR(risks.recall.value(), 1. / 3, 1e-12);
  const ItemSet right = items_of({0, 0}, 0.95);
  const Risks none = compare_items({{right}, {right}})[0].risks;
  EXPECT_FALSE(none.precision || none.recall);
}

TEST(Items, OtherItemsAreNotCompared) {
  const ItemSet set = items_of({0, 1});
  ItemSet other = items_of({0, 1, 1});
  EXPECT_TRUE(refuses([&] { compare_items({{set}, {other}}); }, "answered 2 items"));
  other.items.pop_back();
  other.items[1].answer = 1;
  EXPECT_TRUE(refuses([&] { compare_items({{set}, {other}}); }, "item 2"));
  other.name = "another";
  EXPECT_TRUE(refuses([&] { compare_items({{set}, {other}}); }, "not answered by every run"));
  EXPECT_TRUE(refuses([&] { compare_items({{set}}); }, "two runs or more"));
}

}  // namespace
}  // namespace mulligan::calibration::calibration_test
