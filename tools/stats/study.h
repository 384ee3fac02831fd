// A study: what a set of observations says about its conditions, and about each against a baseline.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "framework/core/statistic.h"
#include "tools/stats/observations.h"
#include "tools/stats/resampling.h"
#include "tools/stats/t_tests.h"

namespace mulligan::stats {

// Fewer runs of a condition say nothing that could be reported: no interval, no gain, no test.
inline constexpr std::size_t fewest_reportable = 3;
// Bootstrap intervals of fewer values cover much less than they say (docs/statistics.md has what was measured).
inline constexpr std::size_t fewest_bootstrapped = 10;

struct StudyOptions {
  std::string baseline;  // condition that the others are compared with; "" = that of the first value
  double margin = 0;     // of equivalence, in the metric's unit; 0 = not tested
  double confidence = 0.95;
};

struct ConditionSummary {
  std::string name;
  std::vector<double> values;  // in the order of the observations
  Statistic statistic;
  std::optional<Interval> interval;    // Student's; absent below fewest_reportable values
  std::optional<Interval> bootstrap;   // BCa; absent below fewest_bootstrapped values
  std::vector<std::string> collapsed;  // runs whose values stand out upwards (acceptance.h); they count
};

// Baseline minus condition: above 0 the condition is lower, which is better. Where one of both has fewer than
// fewest_reportable values nothing is compared: `reportable` is false and p = 1.
struct ConditionComparison {
  std::string name;
  bool reportable = true;
  std::optional<TTest> welch;
  PermutationTest shuffle;
  std::size_t pairs = 0;  // seeds that both have exactly once; the paired tests need all values paired
  std::optional<TTest> paired;
  std::optional<PermutationTest> signs;
  std::optional<double> equivalence;  // p of equivalence_test, by `test()`
  double p = 1;                       // two-sided, of `test()`
  double holm = 1;                    // p adjusted for all comparisons of the study

  // The paired tests where there are any.
  const std::optional<TTest>& test() const { return paired ? paired : welch; }
  const PermutationTest& permutation() const { return signs ? *signs : shuffle; }
};

struct Study {
  std::string metric, window;
  StudyOptions options;
  std::vector<ConditionSummary> conditions;  // in the order of their first values; the baseline first
  std::vector<ConditionComparison> comparisons;
  std::vector<std::string> notes;  // what a reader must know
};

// Throws data_error where windows differ, and config_error for an unknown baseline.
Study make_study(const Observations& observations, const StudyOptions& options = {});

// Tables in Markdown; ends with a newline.
std::string study_text(const Study& study);
nlohmann::ordered_json study_json(const Study& study);

}  // namespace mulligan::stats
