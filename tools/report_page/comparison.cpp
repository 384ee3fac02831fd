#include "tools/report_page/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "tools/report_page/run_observations.h"
#include "tools/report_page/run_sections.h"

namespace mulligan::report {
namespace {

struct FigureRow {
  const char* name;
  int digits;
  bool statistics;
  const char* figure;  // RunRecord::figure
  bool loss = false;   // of masked tokens it is a row of its own: it cannot be compared with the next token's
};
constexpr FigureRow figure_rows[] = {
    {"val_bpb", 5, true, "val_bpb"},
    {"val_bpb, quantised", 5, true, "quantised_bpb"},
    {"val_bpb, test-time training", 5, true, "ttt_bpb"},
    {"val_loss, nats", 5, true, "val_loss_nats", true},
    {"training loss, mean, nats", 5, true, "train_loss/train_loss_run_nats", true},
    {"training loss, last step, nats", 5, false, "final_loss_nats", true},
    {"artifact, bytes", 0, true, "artifact_bytes"},
    {"steps", 0, true, "steps"},
    {"tokens", 0, false, "tokens"},
    {"tokens per second", 0, true, "tokens_per_second"},
    {"training, seconds", 2, true, "seconds/train"},
    {"evaluation, seconds", 2, false, "seconds/evaluate"},
    {"peak memory, bytes", 0, false, "peak_memory_bytes"},
    {"parameters", 0, false, "parameters"},
};

std::vector<ComparedFigure> figures_of(const std::vector<RunRecord>& runs) {
  std::vector<ComparedFigure> figures;
  for (const FigureRow& row : figure_rows) {
    for (const bool masked : {false, true}) {
      if (masked && !row.loss) continue;
      ComparedFigure figure{
          masked ? row.name + std::string(", masked tokens") : row.name, row.digits, row.statistics, {}};
      for (const RunRecord& run : runs)
        figure.values.push_back(!row.loss || run.fills_in_masked() == masked ? run.figure(row.figure)
                                                                             : std::nullopt);
      if (std::ranges::any_of(figure.values, [](const auto& value) { return value.has_value(); }))
        figures.push_back(std::move(figure));
    }
  }
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
  // Names and places differ without changing what is computed.
  for (const char* key : {"run.name", "run.directory", "checkpoint.directory"}) values.erase(key);
  std::vector<ComparedKey> keys;
  for (auto& [key, row] : values) {
    if (std::ranges::adjacent_find(row, std::not_equal_to<>()) != row.end())
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
  std::map<std::string, int> uses;
  for (const RunRecord& run : runs) ++uses[run.name];
  for (const RunRecord& run : runs) {
    const std::string directory = run.files.directory.lexically_normal().string();
    comparison.labels.push_back(uses[run.name] > 1 ? directory : run.name);
  }
  comparison.figures = figures_of(runs);
  comparison.keys = differing_keys(runs);
  comparison.groups = seed_groups(runs, comparison.keys);
  comparison.runs = std::move(runs);
  return comparison;
}

namespace {

// A row for each of `all`, a column for each run.
template <typename Row, typename Text>
Table table_of(const Comparison& comparison, const char* first, const char* columns,
               const std::vector<Row>& all, std::string Row::*name, Text text) {
  Table table{{first}, columns};
  table.head.insert(table.head.end(), comparison.labels.begin(), comparison.labels.end());
  for (const Row& row : all) {
    auto& cells = table.rows.emplace_back(std::vector{row.*name});
    for (const auto& value : row.values) cells.push_back(text(row, value));
  }
  return table;
}

Table figures_table(const Comparison& comparison) {
  return table_of(comparison, "figure", "lr", comparison.figures, &ComparedFigure::name,
                  [](const ComparedFigure& figure, const std::optional<double>& value) -> std::string {
                    if (!value) return "-";
                    return figure.digits == 0 ? count_text(*value) : fixed(*value, figure.digits);
                  });
}

Table keys_table(const Comparison& comparison) {
  return table_of(comparison, "key", "l", comparison.keys, &ComparedKey::key,
                  [](const ComparedKey&, const std::string& value) { return value.empty() ? "-" : value; });
}

Table seeds_table(const Comparison& comparison) {
  Table table{{"runs", "figure", "mean", "standard deviation", "n", "seeds"}, "llrrrl"};
  for (const SeedGroup& group : comparison.groups) {
    if (group.runs.size() < 2) continue;
    for (const ComparedFigure& figure : comparison.figures) {
      const auto statistic = figure.statistics ? statistic_of(figure, group) : std::nullopt;
      if (!statistic) continue;
      const int digits = figure.digits + 1;
      table.rows.push_back(
          {fmt::format("{} and {} more", comparison.labels[group.runs[0]], group.runs.size() - 1),
           figure.name, fixed(statistic->mean, digits),
           statistic->deviation ? fixed(*statistic->deviation, digits) : "-", std::to_string(statistic->n),
           fmt::format("{}", fmt::join(group.seeds, ", "))});
    }
  }
  return table;
}

// Charts of one curve for each run; those without a point are left out.
std::string curves(const Comparison& comparison) {
  using PointsOf = std::function<std::vector<Point>(const RunRecord&)>;
  struct Overlay {
    LineChart chart;
    PointsOf points_of;
    bool dots = false;
  };
  const auto of_steps = [](double StepRecord::*value) -> PointsOf {
    return [value](const RunRecord& run) { return curve_of(run, value); };
  };
  const auto loss = [](bool masked, bool by_seconds) -> PointsOf {
    return [=](const RunRecord& run) {
      return run.fills_in_masked() == masked ? curve_of(run, &StepRecord::window_loss_nats, by_seconds)
                                             : std::vector<Point>();
    };
  };
  const auto first_rate = [](const RunRecord& run) {
    std::vector<Point> points;
    for (const StepRecord& step : run.metrics.steps)
      points.push_back({static_cast<double>(step.step), step.lr.empty() ? NAN : step.lr[0].second});
    return points;
  };
  const auto adapted = [](const RunRecord& run) {
    return scores_bits(run.ttt) ? running_ttt_score(run.ttt, true) : std::vector<Point>();
  };
  const std::string means = "Window means.", seconds = "seconds of training";
  std::vector<Overlay> all = {
      {{"compare-loss-curve", "Training loss", means, "step", "nats per token"}, loss(false, false)},
      {{"compare-loss-seconds-curve", "Training loss", means, seconds, "nats per token"}, loss(false, true)},
      {{"compare-masked-curve", "Training loss of masked tokens", means, "step", "nats"}, loss(true, false)},
      {{"compare-masked-seconds-curve", "Training loss of masked tokens", means, seconds, "nats"},
       loss(true, true)},
      {{"compare-bpb-curve", "Validation", "", "step", "bits per byte"}, validation_bpb, true},
      {{"compare-lr-curve", "Learning rate", "Of each run's first optimiser.", "step", ""}, first_rate},
      {{"compare-gradient-curve", "Gradient norm", "Of all parameters, before clipping.", "step",
        "logarithmic", true},
       of_steps(&StepRecord::gradient_norm)},
      {{"compare-speed-curve", "Speed", "", "step", "tokens per second"},
       of_steps(&StepRecord::tokens_per_second)},
      {{"compare-ttt-curve", "Test-time training, running score", "", "batch of documents", "bits per byte"},
       adapted}};
  std::string html;
  for (auto& [chart, points_of, dots] : all) {
    for (std::size_t i = 0; i < comparison.runs.size(); ++i) {
      const Stroke line = i / palette_size % 2 == 0 ? Stroke::solid : Stroke::dashed;
      chart.curves.push_back(
          {comparison.labels[i], points_of(comparison.runs[i]), i, dots ? Stroke::dots : line});
    }
    if (std::ranges::any_of(chart.curves, [](const Curve& curve) { return !curve.points.empty(); }))
      html += draw(chart);
  }
  return html.empty() ? note("No run has reported a step.") : charts(html);
}

}  // namespace

std::string comparison_text(const Comparison& comparison) {
  const Table keys = keys_table(comparison), seeds = seeds_table(comparison);
  std::string text = doubts_text(comparison.runs) + figures_table(comparison).text() + "\n" +
                     (keys.rows.empty() ? "no key differs\n" : keys.text());
  if (!seeds.rows.empty()) text += "\n" + seeds.text();
  if (const std::string study = study_of_runs(comparison.runs); !study.empty()) text += "\n" + study;
  return text;
}

std::string comparison_sections(const Comparison& comparison) {
  const Table keys = keys_table(comparison), seeds = seeds_table(comparison);
  std::string doubts;
  for (const RunRecord& run : comparison.runs) doubts += doubts_html(run);
  std::string html =
      section("compare-figures", "Final figures", doubts + html_of(figures_table(comparison), "figures"));
  if (!seeds.rows.empty()) {
    html += section(
        "compare-seeds", "Over seeds",
        note("Runs whose configurations are the same but for run.seed; the standard deviation is that of "
             "the sample (n - 1).") +
            html_of(seeds));
  }
  if (const std::string study = study_of_runs(comparison.runs); !study.empty()) {
    html +=
        section("compare-statistics", "Intervals and tests",
                note("Of the last score that all runs have; docs/statistics.md says what each column is.") +
                    "<pre>" + escape(study) + "</pre>\n");
  }
  html += section("compare-curves", "Curves", curves(comparison));
  return html + section("compare-keys", "Keys that differ",
                        keys.rows.empty() ? note("No key differs, but for names and places of the runs.")
                                          : html_of(keys, "settings"));
}

}  // namespace mulligan::report
