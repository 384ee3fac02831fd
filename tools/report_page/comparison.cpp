#include "tools/report_page/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "framework/core/printable.h"
#include "tools/report_page/chart.h"
#include "tools/report_page/html.h"
#include "tools/report_page/run_curves.h"
#include "tools/report_page/run_observations.h"
#include "tools/report_page/run_sections.h"

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

std::vector<ComparedFigure> figures_of(const std::vector<RunRecord>& runs) {
  using Pick = std::function<std::optional<double>(const RunRecord&)>;
  const auto result = [](const char* path) -> Pick {
    return [path](const RunRecord& run) { return run.result.number(path); };
  };
  std::vector<ComparedFigure> figures;
  const auto add = [&](const char* name, int digits, bool statistics, const Pick& pick) {
    ComparedFigure figure{name, digits, statistics, {}};
    for (const RunRecord& run : runs) figure.values.push_back(pick(run));
    if (std::ranges::any_of(figure.values, [](const auto& value) { return value.has_value(); }))
      figures.push_back(std::move(figure));
  };
  add("val_bpb", 5, true, result("val_bpb"));
  add("val_bpb, quantised", 5, true, [](const RunRecord& run) -> std::optional<double> {
    const EvaluationRecord* score = run.quantized();
    return score && score->val_bytes > 0 ? std::optional(score->val_bpb) : std::nullopt;
  });
  add("val_bpb, test-time training", 5, true,
      [](const RunRecord& run) { return scores_bits(run.ttt) ? ttt_score(run.ttt) : std::nullopt; });
  // Losses of masked tokens cannot be compared with those of the next token: rows of their own.
  const auto losses = [&](const char* loss, const char* masked, bool statistics, const char* path) {
    for (const bool fills_in : {false, true}) {
      add(fills_in ? masked : loss, 5, statistics, [&](const RunRecord& run) {
        return run.fills_in_masked() == fills_in ? run.result.number(path) : std::nullopt;
      });
    }
  };
  losses("val_loss, nats", "val_loss of masked tokens, nats", true, "val_loss_nats");
  losses("training loss, mean, nats", "training loss of masked tokens, mean, nats", true,
         "train_loss/train_loss_run_nats");
  losses("training loss, last step, nats", "training loss of masked tokens, last step, nats", false,
         "final_loss_nats");
  add("artifact, bytes", 0, true, [](const RunRecord& run) { return run.quantize.number("artifact_bytes"); });
  add("steps", 0, true, result("steps"));
  add("tokens", 0, false, result("tokens"));
  add("tokens per second", 0, true, result("tokens_per_second"));
  add("training, seconds", 2, true, result("seconds/train"));
  add("evaluation, seconds", 2, false, result("seconds/evaluate"));
  add("peak memory, bytes", 0, false, result("peak_memory_bytes"));
  add("parameters", 0, false, result("parameters"));
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

Table figures_table(const Comparison& comparison) {
  Table table{head_of(comparison, "figure"), {}};
  for (const ComparedFigure& figure : comparison.figures) {
    std::vector<Cell> row{{figure.name}};
    for (const auto& value : figure.values) row.push_back({figure_text(value, figure.digits), true});
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table keys_table(const Comparison& comparison) {
  Table table{head_of(comparison, "key"), {}};
  for (const ComparedKey& key : comparison.keys) {
    std::vector<Cell> row{{key.key}};
    for (const std::string& value : key.values) row.push_back({value.empty() ? "-" : value});
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table seeds_table(const Comparison& comparison) {
  Table table{{"runs", "figure", "mean", "standard deviation", "n", "seeds"}, {}};
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

// One curve per run; empty where no run has a point.
std::string overlay(const Comparison& comparison, LineChart chart,
                    const std::function<std::vector<Point>(const RunRecord&)>& points_of, bool dots = false) {
  bool any = false;
  for (std::size_t i = 0; i < comparison.runs.size(); ++i) {
    const Stroke line = i / palette_size % 2 == 0 ? Stroke::solid : Stroke::dashed;
    chart.curves.push_back(
        {comparison.labels[i], points_of(comparison.runs[i]), i, dots ? Stroke::dots : line});
    any = any || !chart.curves.back().points.empty();
  }
  return any ? draw(chart) : "";
}

std::string curves(const Comparison& comparison) {
  std::string html;
  const auto of_steps = [&](const LineChart& chart, double StepRecord::*value) {
    html += overlay(comparison, chart, [value](const RunRecord& run) { return curve_of(run, value); });
  };
  // Losses of masked tokens in charts of their own.
  const auto losses = [&](const std::string& id, const std::string& by, const char* axis, bool by_seconds) {
    for (const bool masked : {false, true}) {
      html += overlay(comparison,
                      {id + (masked ? "-masked" : ""),
                       (masked ? "Training loss of masked tokens by " : "Training loss by ") + by,
                       "Window means.", axis, masked ? "nats per masked token" : "nats per token"},
                      [&](const RunRecord& run) {
                        return run.fills_in_masked() == masked
                                   ? curve_of(run, &StepRecord::window_loss_nats, by_seconds)
                                   : std::vector<Point>{};
                      });
    }
  };
  losses("compare-loss-curve", "step", "step", false);
  losses("compare-loss-seconds-curve", "time", "seconds of training", true);
  html += overlay(comparison, {"compare-bpb-curve", "Validation", "", "step", "bits per byte"},
                  validation_bpb, true);
  html += overlay(
      comparison, {"compare-lr-curve", "Learning rate", "Of each run's first optimiser.", "step", ""},
      [](const RunRecord& run) {
        std::vector<Point> points;
        for (const StepRecord& step : run.metrics.steps)
          points.push_back({static_cast<double>(step.step), step.lr.empty() ? NAN : step.lr[0].second});
        return points;
      });
  of_steps({"compare-gradient-curve", "Gradient norm", "Of all parameters, before clipping.", "step",
            "logarithmic", true},
           &StepRecord::gradient_norm);
  of_steps({"compare-speed-curve", "Speed", "", "step", "tokens per second"}, &StepRecord::tokens_per_second);
  html += overlay(
      comparison,
      {"compare-ttt-curve", "Test-time training, running score", "", "batch of documents", "bits per byte"},
      [](const RunRecord& run) {
        return scores_bits(run.ttt) ? running_ttt_score(run.ttt, true) : std::vector<Point>();
      });
  return html.empty() ? note("No run has reported a step.") : charts(html);
}

}  // namespace

std::string comparison_text(const Comparison& comparison) {
  std::string text = doubts_text(comparison.runs) + plain_text(figures_table(comparison));
  const Table keys = keys_table(comparison), seeds = seeds_table(comparison);
  text += "\n";
  text += keys.rows.empty() ? "no key differs\n" : plain_text(keys);
  if (!seeds.rows.empty()) text += "\n" + plain_text(seeds);
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
