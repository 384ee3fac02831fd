// Markdown's tables: read back as they were written, odd input told from tables, and the page of many files.
#include "tools/report_page/tables_page.h"

#include <gtest/gtest.h>

#include "framework/core/file.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/sentence.h"
#include "tests/support/xml_check.h"
#include "tools/stats/markdown_table.h"

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
  stats::MarkdownTable written(cells[0]);
  written.add(cells[1]);
  written.add(cells[2]);
  const Table seen = only_table(written.text());
  EXPECT_EQ(seen.head, cells[0]);
  EXPECT_EQ(seen.rows, (std::vector<Row>{cells[1], cells[2]}));
  EXPECT_EQ(seen.columns, "llll");
  stats::MarkdownTable lines({"two\nlines"});
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

// Cells that a row leaves out take no memory: a short file cannot ask for much.
TEST(ReportMarkdown, ShortRowsBelowAWideHeadCostNothing) {
  std::string head, dashes, rows;
  for (int i = 0; i < 100'000; ++i) {
    head += "|a";
    dashes += "|-";
    rows += "\n|b";
  }
  const Table table = only_table(head + "\n" + dashes + rows);
  EXPECT_EQ(table.head.size(), 100'000u);
  EXPECT_EQ(table.rows, std::vector<Row>(100'000, Row{"b"}));
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
  EXPECT_EQ(xml_fault(page), "");
  EXPECT_FALSE(contains(page, "alert(1)</script>"));
  EXPECT_TRUE(contains(page, "class=\"number\" data-label=\""));
  EXPECT_TRUE(contains(page, ">cell b</td>"));
  EXPECT_TRUE(contains(page, "x&lt;&amp;</h2>"));
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

}  // namespace
}  // namespace mulligan::report::report_tables_test
