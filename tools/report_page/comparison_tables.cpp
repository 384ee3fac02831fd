#include "tools/report_page/comparison_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "framework/core/grouped.h"
#include "tools/report_page/run_doubts.h"
#include "tools/report_page/run_observations.h"
#include "tools/report_page/units.h"

namespace mulligan::report {
namespace {

std::string figure_text(const std::optional<double>& value, int digits) {
  if (!value) return "-";
  if (digits == 0 && std::isfinite(*value)) return grouped(std::llround(*value));
  return fixed(*value, digits);
}

std::vector<std::string> head_of(const Comparison& comparison, const char* first) {
  std::vector<std::string> head{first};
  head.insert(head.end(), comparison.labels.begin(), comparison.labels.end());
  return head;
}

// What people see as wide: characters, not bytes.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace

TextTable figures_table(const Comparison& comparison) {
  TextTable table{head_of(comparison, "figure"), {}};
  for (const ComparedFigure& figure : comparison.figures) {
    std::vector<Cell> row{{figure.name}};
    for (const auto& value : figure.values) row.push_back({figure_text(value, figure.digits), true});
    table.rows.push_back(std::move(row));
  }
  return table;
}

TextTable keys_table(const Comparison& comparison) {
  TextTable table{head_of(comparison, "key"), {}};
  for (const ComparedKey& key : comparison.keys) {
    std::vector<Cell> row{{key.key}};
    for (const std::string& value : key.values) row.push_back({value.empty() ? "-" : value});
    table.rows.push_back(std::move(row));
  }
  return table;
}

TextTable seeds_table(const Comparison& comparison) {
  TextTable table{{"runs", "figure", "mean", "standard deviation", "n", "seeds"}, {}};
  for (const SeedGroup& group : comparison.groups) {
    if (group.runs.size() < 2) continue;
    const std::string name =
        fmt::format("{} and {} more", comparison.labels[group.runs[0]], group.runs.size() - 1);
    for (const ComparedFigure& figure : comparison.figures) {
      if (!figure.statistics) continue;
      const auto statistic = statistic_of(figure, group);
      if (!statistic) continue;
      const int digits = figure.digits + 1;
      table.rows.push_back({{name},
                            {figure.name},
                            {fixed(statistic->mean, digits), true},
                            {statistic->deviation ? fixed(*statistic->deviation, digits) : "-", true},
                            {std::to_string(statistic->n), true},
                            {fmt::format("{}", fmt::join(group.seeds, ", "))}});
    }
  }
  return table;
}

std::string plain_text(const TextTable& table) {
  std::vector<std::size_t> widths;
  for (const std::string& head : table.head) widths.push_back(width_of(head));
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i].text));
  }
  std::string text;
  const auto add = [&](std::size_t column, const std::string& cell, bool number) {
    const std::string blanks(widths[column] - width_of(cell), ' ');
    if (column > 0) text += "  ";
    text += number ? blanks + cell : cell + blanks;
  };
  const auto end_line = [&] {
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  };
  for (std::size_t i = 0; i < table.head.size(); ++i) {
    add(i, table.head[i], !table.rows.empty() && table.rows[0][i].number);
  }
  end_line();
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) add(i, row[i].text, row[i].number);
    end_line();
  }
  return text;
}

std::string comparison_text(const Comparison& comparison) {
  std::string text = doubts_text(comparison.runs) + plain_text(figures_table(comparison));
  const TextTable keys = keys_table(comparison), seeds = seeds_table(comparison);
  text += "\n";
  text += keys.rows.empty() ? "no key differs\n" : plain_text(keys);
  if (!seeds.rows.empty()) text += "\n" + plain_text(seeds);
  if (const std::string study = study_of_runs(comparison.runs); !study.empty()) text += "\n" + study;
  return text;
}

}  // namespace mulligan::report
