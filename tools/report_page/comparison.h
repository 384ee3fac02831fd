// Several runs side by side: final figures, keys that differ, and statistics over runs that differ only in their seed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/core/statistic.h"
#include "tools/report_page/run_record.h"

namespace mulligan::report {

// A figure of every run, in their order; absent where a run has none.
struct ComparedFigure {
  std::string name;         // with its unit
  int digits = 0;           // after the point
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

struct Comparison {
  std::vector<RunRecord> runs;
  std::vector<std::string> labels;  // distinct: the run's name, or its directory where two have one name
  std::vector<ComparedFigure> figures;
  std::vector<ComparedKey> keys;  // that differ, names and places of runs left out
  std::vector<SeedGroup> groups;  // in order of their first runs
};

Comparison compare(std::vector<RunRecord> runs);

// Over the runs of a group that have the figure; absent where none has it.
std::optional<Statistic> statistic_of(const ComparedFigure& figure, const SeedGroup& group);

// Tables in Markdown; ends with a newline.
std::string comparison_text(const Comparison& comparison);
// The same and the curves laid over one another, as sections of HTML.
std::string comparison_sections(const Comparison& comparison);

}  // namespace mulligan::report
