// Files of questions and answers, and the comparison of runs.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "framework/core/file.h"
#include "lab/calibration/answer.h"
#include "lab/calibration/compare_items.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/sentence.h"

namespace mulligan::calibration::calibration_items_test {
namespace {

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
  EXPECT_TRUE(contains(sentence_of([] { read_text("\n"); }), "holds no question"));
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
  EXPECT_TRUE(contains(sentence_of([&] { read_items(scratch / "items.jsonl"); }), "line 5 is not an item"));
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
  EXPECT_TRUE(contains(calibration_text(sets), "law"));
}

// Of six items the second run loses four that the first has right: p = 2 / 2^4; by subject 2 / 2^3 and 1,
// Holm doubles.
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

// Three runs agree, surely, on a wrong answer of a badly calibrated subject.
TEST(Items, AtRisk) {
  const ItemSet set = items_of({0, 1, 1, 1, 0, 0}, 0.95);
  const auto compared = compare_items({{set}, {set}, {set}});
  EXPECT_EQ(compared[0].risky_ids,
            (std::vector<std::string>{"0", "1", "2", "3"}));  // ECE of law .70, of art .05
  EXPECT_EQ(compared[0].risks.flagged_wrong, 3U);
  EXPECT_EQ(compared[0].risks.recall, 1);
}

TEST(Items, OtherItemsAreNotCompared) {
  const ItemSet set = items_of({0, 1});
  ItemSet other = items_of({0, 1, 1});
  EXPECT_TRUE(contains(sentence_of([&] { compare_items({{set}, {other}}); }), "answered 2 items"));
  other.items.pop_back();
  other.items[1].answer = 1;
  EXPECT_TRUE(contains(sentence_of([&] { compare_items({{set}, {other}}); }), "item 2"));
  other.name = "another";
  EXPECT_TRUE(contains(sentence_of([&] { compare_items({{set}, {other}}); }), "not answered by every run"));
  EXPECT_TRUE(contains(sentence_of([&] { compare_items({{set}}); }), "two runs or more"));
}

}  // namespace
}  // namespace mulligan::calibration::calibration_items_test
