// Tables of Markdown as pages. What other tools read: TensorBoard's record framing and messages, and CSV.
#include "tools/report_page/tables_page.h"

#include <gtest/gtest.h>

#include <string>

#include "framework/core/file.h"
#include "framework/report/metrics_reader.h"
#include "framework/report/tensorboard.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/sentence.h"

namespace mulligan::report::report_tables_test {
namespace {

using Row = std::vector<std::string>;

std::vector<MarkdownPiece> read(const std::string& text) {
  return read_markdown(text, "t.md");
}
std::string paragraph(const MarkdownPiece& piece) {
  return std::get<std::string>(piece);
}
Table table_of(const MarkdownPiece& piece) {
  return std::get<Table>(piece);
}
// The only table of `text`; fails where there is anything else.
Table only_table(const std::string& text) {
  const auto pieces = read(text);
  EXPECT_EQ(pieces.size(), 1u) << text;
  return table_of(pieces.at(0));
}

TEST(ReportMarkdown, ReadsBackWhatMulliganWrites) {
  const std::vector<Row> cells = {
      {"a", "|", "", "\\"}, {"x|y", "\\|", "\\\\", "a\\"}, {"<b>&", "0.5 ± 0.1", "| |", "`off`"}};
  Table written{cells[0]};
  written.add(cells[1]);
  written.add(cells[2]);
  const Table seen = only_table(written.text());
  EXPECT_EQ(seen.head, cells[0]);
  EXPECT_EQ(seen.rows, (std::vector<Row>{cells[1], cells[2]}));
  EXPECT_EQ(seen.columns, "llll");
  const Table lines{Row{"two\nlines"}};
  EXPECT_EQ(only_table(lines.text()).head, Row{"two lines"});
}

TEST(ReportMarkdown, TablesStandBetweenParagraphs) {
  const auto pieces = read(
      "Of n = 5\nseeds.\n\n\nMore.\n"
      "| a | b | c | d |\r\n|:--|:-:|--:|---|\r\n| 1 | 2 | 3 | 4 |\r\n"
      "Below it.\n\n|e\n|-\n\n| no table");
  ASSERT_EQ(pieces.size(), 6u);
  EXPECT_EQ(paragraph(pieces[0]), "Of n = 5 seeds.");
  EXPECT_EQ(paragraph(pieces[1]), "More.");
  EXPECT_EQ(table_of(pieces[2]).columns, "lcrl");
  EXPECT_EQ(table_of(pieces[2]).rows, (std::vector<Row>{{"1", "2", "3", "4"}}));
  EXPECT_EQ(paragraph(pieces[3]), "Below it.");
  EXPECT_EQ(table_of(pieces[4]).head, Row{"e"});
  EXPECT_TRUE(table_of(pieces[4]).rows.empty());
  EXPECT_EQ(paragraph(pieces[5]), "| no table");
}

TEST(ReportMarkdown, WhatIsNoTableIsText) {
  for (const char* text : {
           "| a | b |",               // nothing below
           "| a | b |\n\n|---|---|",  // not directly below
           "| a | b |\n|---|",        // other numbers of cells
           "| a |\n|---|---|",
           "| a |\n| |",  // no line of dashes
           "| a |\n|:|",
           "| a |\n|-x-|",
           "a | b\n--- | ---",  // no pipe at the beginning
           "# a\n<table>",
           "|",
           "|\n|",
       }) {
    for (const MarkdownPiece& piece : read(text))
      EXPECT_TRUE(std::holds_alternative<std::string>(piece)) << text;
  }
  EXPECT_TRUE(read("").empty());
  EXPECT_TRUE(read("\n \t\r\n\n").empty());
}

TEST(ReportMarkdown, RowsHaveAsManyCellsAsTheHead) {
  const Table table = only_table("|a|b|c|\n|-|-|-|\n|1\n|1|\n||\n|\n|  |2|\n|1\\|2|3|4");
  EXPECT_EQ(table.rows, (std::vector<Row>{{"1"}, {"1"}, {""}, {""}, {"", "2"}, {"1|2", "3", "4"}}));
  const std::string refused = sentence_of([] { read("x\n\n|a|\n|-|\n|1|\n|1|2|\n"); });
  EXPECT_TRUE(contains(refused, "t.md:6: a row of 2 cells below a head of 1"));
}

// Whatever bytes a file has, the reader ends, and the page of it is well-formed.
TEST(ReportTables, APageOfHostileCells) {
  const test_support::ScratchFolder scratch;
  std::string odd = "<script>alert(1)</script> \x01\xff\"'&\n|a<|\n|--:|\n|</td>|\n|";
  odd += std::string("\0\x80\xc3", 3) + "|\n";
  write_file_atomically(scratch.path() / "x<&/tables.md", odd);
  write_file_atomically(scratch.path() / "b/tables.md", "|head b|\n|:-:|\n|cell b|\n");
  write_file_atomically(scratch.path() / "c/other.md", "|not|\n|-|\n");
  write_file_atomically(scratch.path() / "file", "x");
  const std::string page = tables_page({scratch.path()});
  EXPECT_FALSE(contains(page, "alert(1)</script>"));
  EXPECT_TRUE(contains(page, "class=\"number\" data-label=\"", ">cell b</td>", "x&lt;&amp;</h2>"));
  EXPECT_FALSE(contains(page, ">not<")) << "of another file";
  EXPECT_LT(page.find("head b"), page.find("a&lt;")) << "sections come by name";
  EXPECT_FALSE(contains(tables_page({scratch.path() / "b"}), "a&lt;")) << "a folder of its own";
}

TEST(ReportTables, RefusesWhatHoldsNoTables) {
  const test_support::ScratchFolder scratch;
  const auto refusal = [&](const std::string& folder) {
    return sentence_of([&] { tables_page({scratch.path() / folder}); });
  };
  EXPECT_TRUE(contains(refusal("nowhere"), "cannot be read"));
  write_file_atomically(scratch.path() / "empty/other.md", "");
  EXPECT_TRUE(contains(refusal("empty"), "holds neither"));
  write_file_atomically(scratch.path() / "text/tables.md", "No table.\n");
  EXPECT_TRUE(contains(refusal("text"), "holds no Markdown table"));
  write_file_atomically(scratch.path() / "wide/tables.md", "|a|\n|-|\n|1|2|\n");
  EXPECT_TRUE(contains(refusal("wide"), "tables.md:3:"));
  std::filesystem::create_directories(scratch.path() / "folder/tables.md");
  EXPECT_TRUE(contains(refusal("folder"), "folder/tables.md"));
}

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text += static_cast<char>(value);
  return text;
}

TEST(TensorBoard, ARecordIsLengthChecksumDataChecksum) {
  // masked: (0xe3069283 >> 15 | 0xe3069283 << 17) + 0xa282ead8, modulo 2^32.
  const std::string record = tensorboard_record("123456789");
  ASSERT_EQ(record.size(), 8u + 4 + 9 + 4);
  EXPECT_EQ(record.substr(0, 8), bytes({9, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(record.substr(12, 9), "123456789");
  EXPECT_EQ(masked_crc32c("123456789"), 0xc78ab0e5u);
  EXPECT_EQ(record.substr(21), bytes({0xe5, 0xb0, 0x8a, 0xc7}));
}

TEST(TensorBoard, AnEventHoldsTheValuesOfItsStep) {
  const std::string file = tensorboard_events({{300, 1.0, "a", 0.5}, {300, 1.0, "b", -2.0}}, 0.0);
  const std::size_t head = 8 + 4 + (9 + 2 + 2 + 13) + 4;  // wall time, step, "brain.Event:2"
  ASSERT_GT(file.size(), head + 12);
  EXPECT_NE(file.substr(0, head).find("brain.Event:2"), std::string::npos);
  const std::string event = file.substr(head + 12, file.size() - head - 16);
  EXPECT_EQ(event, bytes({0x09, 0,    0,    0, 0,   0,    0, 0xf0, 0x3f,           // 1: wall_time 1.0
                          0x10, 0xac, 0x02,                                        // 2: step 300
                          0x2a, 20,                                                // 5: summary
                          0x0a, 8,    0x0a, 1, 'a', 0x15, 0, 0,    0,    0x3f,     // value: tag, 0.5
                          0x0a, 8,    0x0a, 1, 'b', 0x15, 0, 0,    0,    0xc0}));  // value: tag, -2
}

TEST(Scalars, AreTheFiniteNumbersOfTheHistory) {
  MetricsHistory history;
  StepRecord step;
  step.step = 5;
  step.loss_nats = 3.5;
  step.window_loss_nats = std::numeric_limits<double>::quiet_NaN();
  step.elapsed_seconds = 2;
  step.lr = {{"matrices", 0.02}};
  history.steps = {step};
  history.validations = {{{3.0, 1.25, 100, 300, 1.0}, 5}, {{2.5, 0, 100, 0, 1.0}, 9}};
  const std::vector<Scalar> scalars = scalars_of(history);
  const auto value = [&](std::int64_t at, const std::string& name) -> double {
    for (const Scalar& s : scalars) {
      if (s.step == at && s.name == name) return s.value;
    }
    return -1;
  };
  EXPECT_EQ(value(5, "loss_nats"), 3.5);
  EXPECT_EQ(value(5, "lr/matrices"), 0.02);
  EXPECT_EQ(value(5, "val_bpb"), 1.25);
  EXPECT_EQ(value(9, "val_loss_nats"), 2.5);
  EXPECT_EQ(value(9, "val_bpb"), -1);  // no bytes were counted
  EXPECT_EQ(value(5, "window_loss_nats"), -1);
  EXPECT_EQ(scalars.back().elapsed_seconds, 2);
}

TEST(Scalars, CsvHasARowPerStepAndQuotesNames) {
  EXPECT_EQ(csv_table({{1, 0.5, "loss_nats", 4.25}, {2, 1, "loss_nats", 4}, {2, 1, "lr/a,\"b\"", 0.1}}),
            "step,elapsed_seconds,loss_nats,\"lr/a,\"\"b\"\"\"\r\n1,0.5,4.25,\r\n2,1,4,0.1\r\n");
}

}  // namespace
}  // namespace mulligan::report::report_tables_test
