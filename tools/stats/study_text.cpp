// A study as Markdown and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tools/stats/markdown_table.h"
#include "tools/stats/study.h"

namespace mulligan::stats {
namespace {

using Json = nlohmann::ordered_json;

std::string p_text(double p) {
  return p < 0.0001 ? fmt::format("{:.1e}", p) : fmt::format("{:.4f}", p);
}
std::string interval_text(const std::optional<Interval>& interval) {
  return interval ? fmt::format("{:.5f} to {:.5f}", interval->low, interval->high) : "-";
}

std::string conditions_text(const Study& study) {
  const std::string confidence = fmt::format("{:g} %", 100 * study.options.confidence);
  const bool bootstrapped = std::ranges::any_of(
      study.conditions, [](const ConditionSummary& c) { return c.bootstrap.has_value(); });
  std::vector<std::string> head = {"condition", "runs", "mean", "sd", "t interval, " + confidence};
  if (bootstrapped) head.push_back("BCa bootstrap, " + confidence);
  Table table{head};
  for (const ConditionSummary& c : study.conditions) {
    std::vector<std::string> row = {
        c.name, fmt::format("{}", c.values.size()), fmt::format("{:.5f}", c.statistic.mean),
        c.statistic.deviation ? fmt::format("{:.5f}", *c.statistic.deviation) : "-",
        interval_text(c.interval)};
    if (bootstrapped) row.push_back(interval_text(c.bootstrap));
    table.add(row);
  }
  return table.text();
}

std::string comparisons_text(const Study& study) {
  Table table{{"condition", "gain", fmt::format("interval, {:g} %", 100 * study.options.confidence),
               "Welch t, df, p", "paired t, df, p", "permutation p (least)", "Holm p"}};
  const auto test_text = [](const std::optional<TTest>& test) {
    return test ? fmt::format("{:.2f}, {:.2f}, {}", test->t, test->degrees, p_text(test->two_sided)) : "-";
  };
  for (const ConditionComparison& c : study.comparisons) {
    if (!c.reportable) {
      table.add({c.name, "-", "-", "-", "-", "-", "-"});
      continue;
    }
    table.add(
        {c.name, fmt::format("{:+.5f}", c.shuffle.difference),
         interval_text(c.test() ? std::optional(c.test()->interval) : std::nullopt), test_text(c.welch),
         test_text(c.paired),
         fmt::format("{} ({})", p_text(c.permutation().two_sided), p_text(c.permutation().least_two_sided)),
         p_text(c.holm)});
  }
  std::string text = table.text();
  if (study.options.margin > 0) text += "\n";
  for (const ConditionComparison& c : study.comparisons) {
    if (!c.equivalence) continue;
    text += fmt::format("- '{}' {} '{}' within {:g} (two one-sided tests, p = {})\n", c.name,
                        *c.equivalence < 0.05 ? "equals" : "is not shown to equal", study.options.baseline,
                        study.options.margin, p_text(*c.equivalence));
  }
  return text;
}

// Infinite numbers, of samples that do not vary, become null.
Json json_of(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}
Json json_of(const Interval& interval) {
  return {interval.low, interval.high};
}
Json json_of(const TTest& test) {
  return {{"difference", test.difference},
          {"standard_error", test.standard_error},
          {"t", json_of(test.t)},
          {"degrees", test.degrees},
          {"p_two_sided", test.two_sided},
          {"p_greater", test.greater},
          {"interval", json_of(test.interval)}};
}
Json json_of(const PermutationTest& test) {
  return {{"p_two_sided", test.two_sided},
          {"least_two_sided", test.least_two_sided},
          {"exact", test.exact},
          {"arrangements", test.arrangements}};
}
template <typename T>
Json json_of(const std::optional<T>& value) {
  return value ? json_of(*value) : Json(nullptr);
}

Json json_of(const ConditionSummary& c) {
  Json json = {{"name", c.name},
               {"values", c.values},
               {"mean", c.statistic.mean},
               {"sd", json_of(c.statistic.deviation)},
               {"t_interval", json_of(c.interval)}};
  if (c.bootstrap) json["bootstrap_bca"] = json_of(*c.bootstrap);
  json["collapsed"] = c.collapsed;
  return json;
}

Json json_of(const ConditionComparison& c, double margin) {
  Json json = {{"name", c.name}, {"reportable", c.reportable}};
  if (!c.reportable) return json;
  json["gain"] = c.shuffle.difference;
  json["shuffle"] = json_of(c.shuffle);
  json["pairs"] = c.pairs;
  if (c.welch) json["welch"] = json_of(*c.welch);
  if (c.paired) json["paired"] = json_of(*c.paired);
  if (c.signs) json["sign_flip"] = json_of(*c.signs);
  if (c.equivalence) json["equivalence"] = {{"margin", margin}, {"p", *c.equivalence}};
  json["p"] = c.p;
  json["p_holm"] = c.holm;
  return json;
}

}  // namespace

std::string study_text(const Study& study) {
  std::string text = fmt::format("{}{}{}; lower is better\n\n{}", study.metric,
                                 study.window.empty() ? "" : ", ", study.window, conditions_text(study));
  if (!study.comparisons.empty()) {
    text += fmt::format("\nGain: lower than '{}' by.\n\n{}", study.options.baseline, comparisons_text(study));
  }
  if (!study.notes.empty()) text += "\n";
  for (const std::string& note : study.notes) text += fmt::format("Note: {}.\n", note);
  return text;
}

nlohmann::ordered_json study_json(const Study& study) {
  Json json = {{"metric", study.metric},
               {"window", study.window},
               {"baseline", study.options.baseline},
               {"confidence", study.options.confidence},
               {"conditions", Json::array()},
               {"comparisons", Json::array()}};
  for (const ConditionSummary& condition : study.conditions) json["conditions"].push_back(json_of(condition));
  for (const ConditionComparison& comparison : study.comparisons)
    json["comparisons"].push_back(json_of(comparison, study.options.margin));
  json["notes"] = study.notes;
  return json;
}

}  // namespace mulligan::stats
