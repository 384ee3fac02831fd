#include "tools/report_page/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "framework/core/printable.h"
#include "tools/report_page/html.h"
#include "tools/report_page/run_observations.h"

namespace mulligan::report {
namespace {

// Keys that name a run or its places, and so differ without changing what is computed.
bool names_the_run(std::string_view key) {
  return key == "run.name" || key == "run.directory" || key == "checkpoint.directory";
}

std::vector<std::string> distinct_labels(const std::vector<RunRecord>& runs) {
  std::map<std::string, int> uses;
  for (const RunRecord& run : runs) ++uses[run.name];
  std::vector<std::string> labels;
  for (const RunRecord& run : runs) {
    labels.push_back(uses[run.name] > 1 ? run.files.directory.lexically_normal().string() : run.name);
  }
  return labels;
}

std::optional<double> last_evaluation(const RunRecord& run) {
  const EvaluationRecord* evaluation = run.quantized();
  if (!evaluation || evaluation->val_bytes == 0) return {};
  return evaluation->val_bpb;
}

std::vector<ComparedFigure> figures_of(const std::vector<RunRecord>& runs) {
  using Pick = std::function<std::optional<double>(const RunRecord&)>;
  const auto result = [](std::optional<double> TrainingResult::*member) -> Pick {
    return [member](const RunRecord& run) { return run.result ? (*run.result).*member : std::nullopt; };
  };
  const auto seconds = [](const char* phase) -> Pick {
    return [phase](const RunRecord& run) -> std::optional<double> {
      if (!run.result) return {};
      for (const auto& [name, value] : run.result->phase_seconds) {
        if (name == phase) return value;
      }
      return {};
    };
  };
  std::vector<ComparedFigure> figures;
  const auto add = [&](const char* name, int digits, bool statistics, const Pick& pick) {
    ComparedFigure figure{name, digits, statistics, {}};
    for (const RunRecord& run : runs) figure.values.push_back(pick(run));
    if (std::ranges::any_of(figure.values, [](const auto& value) { return value.has_value(); })) {
      figures.push_back(std::move(figure));
    }
  };
  add("val_bpb", 5, true, result(&TrainingResult::val_bpb));
  add("val_bpb, quantised", 5, true, last_evaluation);
  add("val_bpb, test-time training", 5, true, [](const RunRecord& run) -> std::optional<double> {
    return run.ttt && run.ttt->bits ? run.ttt->with_bpb : std::nullopt;
  });
  // Losses of masked tokens cannot be compared with those of the next token: rows of their own.
  const auto losses = [&](const char* loss, const char* masked, bool statistics,
                          std::optional<double> TrainingResult::*member) {
    for (const bool fills_in : {false, true}) {
      add(fills_in ? masked : loss, 5, statistics,
          [&, pick = result(member)](const RunRecord& run) -> std::optional<double> {
            return run.fills_in_masked() == fills_in ? pick(run) : std::nullopt;
          });
    }
  };
  losses("val_loss, nats", "val_loss of masked tokens, nats", true, &TrainingResult::val_loss_nats);
  losses("training loss, mean, nats", "training loss of masked tokens, mean, nats", true,
         &TrainingResult::run_loss_nats);
  losses("training loss, last step, nats", "training loss of masked tokens, last step, nats", false,
         &TrainingResult::final_loss_nats);
  add("artifact, bytes", 0, true, [](const RunRecord& run) -> std::optional<double> {
    return run.quantize ? std::optional(run.quantize->artifact_bytes) : std::nullopt;
  });
  add("steps", 0, true, result(&TrainingResult::steps));
  add("tokens", 0, false, result(&TrainingResult::tokens));
  add("tokens per second", 0, true, result(&TrainingResult::tokens_per_second));
  add("training, seconds", 2, true, seconds("train"));
  add("evaluation, seconds", 2, false, seconds("evaluate"));
  add("peak memory, bytes", 0, false, result(&TrainingResult::peak_memory_bytes));
  add("parameters", 0, false, result(&TrainingResult::parameters));
  return figures;
}

std::vector<ComparedKey> differing_keys(const std::vector<RunRecord>& runs) {
  std::map<std::string, std::vector<std::string>> values;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const ResolvedSetting& setting : runs[i].settings) {
      auto& row = values[setting.key];
      row.resize(runs.size());
      row[i] = setting.value;
    }
  }
  std::vector<ComparedKey> keys;
  for (auto& [key, row] : values) {
    if (names_the_run(key) || std::ranges::adjacent_find(row, std::not_equal_to<>()) == row.end()) continue;
    keys.push_back({key, std::move(row)});
  }
  return keys;
}

std::vector<SeedGroup> seed_groups(const std::vector<RunRecord>& runs, const std::vector<ComparedKey>& keys) {
  std::vector<SeedGroup> groups;
  std::map<std::vector<std::string>, std::size_t> places;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::vector<std::string> identity;
    for (const ComparedKey& key : keys) {
      if (key.key != "run.seed") identity.push_back(key.values[i]);
    }
    // Without its configuration, a run is like no other.
    if (runs[i].settings.empty()) identity = {"run", std::to_string(i)};
    const auto [place, added] = places.emplace(std::move(identity), groups.size());
    if (added) groups.emplace_back();
    groups[place->second].runs.push_back(i);
    groups[place->second].seeds.push_back(runs[i].setting("run.seed"));
  }
  return groups;
}

}  // namespace

std::optional<Statistic> statistic_of(const ComparedFigure& figure, const SeedGroup& group) {
  std::vector<double> values;
  for (const std::size_t run : group.runs) {
    if (figure.values[run]) values.push_back(*figure.values[run]);
  }
  if (values.empty()) return {};
  return mulligan::statistic_of(values);
}

Comparison compare(std::vector<RunRecord> runs) {
  Comparison comparison;
  comparison.labels = distinct_labels(runs);
  comparison.figures = figures_of(runs);
  comparison.keys = differing_keys(runs);
  comparison.groups = seed_groups(runs, comparison.keys);
  comparison.runs = std::move(runs);
  return comparison;
}

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
