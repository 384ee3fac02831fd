// Several runs side by side: their final figures, the keys in which they differ, and statistics over runs
// that differ in their seed alone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/core/statistic.h"
#include "tools/report_page/html.h"
#include "tools/report_page/run_record.h"

namespace mulligan::report {

// A figure of every run, in their order; absent where a run has none.
struct ComparedFigure {
  std::string name;         // with its unit
  int digits = 0;           // behind the point
  bool statistics = false;  // worth a mean over seeds
  std::vector<std::optional<double>> values;
};

struct ComparedKey {
  std::string key;
  std::vector<std::string> values;  // by run, TOML syntax; "" where a run has no such key
};

// Over runs whose configurations are the same but for the seed, and the names and places of runs.
struct SeedGroup {
  std::vector<std::size_t> runs;
  std::vector<std::string> seeds;
};

// Over the runs of a group that have the figure; absent where none has it.
std::optional<Statistic> statistic_of(const ComparedFigure& figure, const SeedGroup& group);

struct Comparison {
  std::vector<RunRecord> runs;
  std::vector<std::string> labels;  // distinct: the run's name, or its directory where two have one name
  std::vector<ComparedFigure> figures;
  std::vector<ComparedKey> keys;  // that differ, names and places of runs left out
  std::vector<SeedGroup> groups;  // in order of their first runs
};

Comparison compare(std::vector<RunRecord> runs);

// As tables for people; ends with a newline.
std::string comparison_text(const Comparison& comparison);
// The same and the curves laid over one another, as sections of HTML.
std::string comparison_sections(const Comparison& comparison);

// A comparison as tables of text cells, the same for the terminal and for a page.
struct TextTable {
  std::vector<std::string> head;
  std::vector<std::vector<Cell>> rows;
};

TextTable figures_table(const Comparison& comparison);  // a row per figure, a column per run
TextTable keys_table(const Comparison& comparison);     // a row per key, a column per run
// A row per group and figure: mean, standard deviation, n, seeds.
TextTable seeds_table(const Comparison& comparison);

// Columns padded to their widest cell, two blanks between them; ends with a newline.
std::string plain_text(const TextTable& table);

}  // namespace mulligan::report
