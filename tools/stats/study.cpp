#include "tools/stats/study.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "framework/core/error.h"
#include "tools/stats/acceptance.h"
#include "tools/stats/t_tests.h"

namespace mulligan::stats {
namespace {

// Observation indices by condition, in the order of first values, the baseline first.
struct Grouped {
  std::vector<std::string> names;
  std::vector<std::vector<std::size_t>> members;
};

Grouped grouped_by_condition(const Observations& all, const std::string& baseline) {
  Grouped groups;
  for (std::size_t i = 0; i < all.values.size(); ++i) {
    const std::string name = condition_of(all, all.values[i]);
    const auto found = std::ranges::find(groups.names, name);
    const auto at = static_cast<std::size_t>(found - groups.names.begin());
    if (found == groups.names.end()) {
      groups.names.push_back(name);
      groups.members.emplace_back();
    }
    groups.members[at].push_back(i);
  }
  if (baseline.empty()) return groups;
  const auto found = std::ranges::find(groups.names, baseline);
  if (found == groups.names.end()) {
    throw config_error("there is no condition '{}' to be the baseline, only: {}.", baseline,
                       fmt::join(groups.names, "; "));
  }
  const auto at = found - groups.names.begin();
  std::rotate(groups.names.begin(), groups.names.begin() + at, groups.names.begin() + at + 1);
  std::rotate(groups.members.begin(), groups.members.begin() + at, groups.members.begin() + at + 1);
  return groups;
}

std::vector<double> values_of(const Observations& all, const std::vector<std::size_t>& members) {
  std::vector<double> values;
  for (const std::size_t i : members) values.push_back(all.values[i].value);
  return values;
}

ConditionSummary summary_of(const Observations& all, const std::string& name,
                            const std::vector<std::size_t>& members, double confidence) {
  ConditionSummary summary;
  summary.name = name;
  summary.values = values_of(all, members);
  summary.statistic = statistic_of(summary.values);
  if (members.size() >= fewest_reportable) summary.interval = t_interval(summary.values, confidence);
  if (members.size() >= fewest_bootstrapped) summary.bootstrap = bootstrap(summary.values, confidence);
  for (const std::size_t i : collapsed_values(summary.values)) {
    summary.collapsed.push_back(all.values[members[i]].run);
  }
  return summary;
}

// Values of both by common seed; empty unless each value has a seed of its own that the other has as well.
std::pair<std::vector<double>, std::vector<double>> pairs_of(const Observations& all,
                                                             const std::vector<std::size_t>& first,
                                                             const std::vector<std::size_t>& second) {
  std::map<std::string, double> by_seed;
  for (const std::size_t i : second) {
    if (all.values[i].seed.empty()) return {};
    if (!by_seed.emplace(all.values[i].seed, all.values[i].value).second) return {};
  }
  std::pair<std::vector<double>, std::vector<double>> pairs;
  std::set<std::string> seen;
  for (const std::size_t i : first) {
    const auto found = by_seed.find(all.values[i].seed);
    if (found == by_seed.end() || !seen.insert(found->first).second) return {};
    pairs.first.push_back(all.values[i].value);
    pairs.second.push_back(found->second);
  }
  if (pairs.first.size() != by_seed.size()) return {};
  return pairs;
}

ConditionComparison comparison_of(const Observations& all, const std::string& name,
                                  const std::vector<std::size_t>& baseline,
                                  const std::vector<std::size_t>& members, const StudyOptions& options) {
  const std::vector<double> theirs = values_of(all, baseline), ours = values_of(all, members);
  ConditionComparison result;
  result.name = name;
  result.reportable = std::min(theirs.size(), ours.size()) >= fewest_reportable;
  if (!result.reportable) return result;
  result.shuffle = shuffle_test(theirs, ours);
  result.welch = welch_test(theirs, ours, 0, options.confidence);
  result.effect = hedges_g(theirs, ours);
  if (std::isfinite(*result.effect) && *result.effect != 0)
    result.runs_needed = runs_for_power(*result.effect);
  const auto [first, second] = pairs_of(all, baseline, members);
  result.pairs = first.size();
  if (!first.empty()) {
    result.paired = paired_test(first, second, 0, options.confidence);
    result.signs = sign_flip_test(first, second);
  }
  const std::optional<TTest>& test = result.paired ? result.paired : result.welch;
  result.p = test->two_sided;
  if (options.margin > 0) result.equivalence = equivalence_test(*test, options.margin);
  return result;
}

void adjust_for_all(std::vector<ConditionComparison>& comparisons) {
  std::vector<ConditionComparison*> made;
  std::vector<double> p;
  for (ConditionComparison& comparison : comparisons) {
    if (!comparison.reportable) continue;
    made.push_back(&comparison);
    p.push_back(comparison.p);
  }
  const std::vector<double> adjusted = holm(p);
  for (std::size_t i = 0; i < made.size(); ++i) made[i]->holm = adjusted[i];
}

void add_notes(Study& study) {
  for (const ConditionSummary& condition : study.conditions) {
    if (!counts_a_run_twice(condition.values)) continue;
    study.notes.push_back(
        fmt::format("values of '{}' are equal to the last digit, so a run was counted more than once: its "
                    "standard deviation, interval and tests say nothing",
                    condition.name));
  }
  for (const ConditionSummary& condition : study.conditions) {
    if (condition.values.size() < fewest_reportable) {
      study.notes.push_back(
          fmt::format("'{}' has {} run{}: below three there is no interval, no gain and no test",
                      condition.name, condition.values.size(), condition.values.size() == 1 ? "" : "s"));
    }
    if (!condition.collapsed.empty()) {
      study.notes.push_back(
          fmt::format("'{}' has runs that stand out upwards, which count like the others: {}", condition.name,
                      fmt::join(condition.collapsed, ", ")));
    }
  }
  for (const ConditionComparison& comparison : study.comparisons) {
    if (!comparison.reportable) continue;
    const PermutationTest& test = comparison.signs ? *comparison.signs : comparison.shuffle;
    if (test.least_two_sided > 0.01) {
      study.notes.push_back(
          fmt::format("with this number of runs of '{}' no permutation p can be below {:.3g}",
                      comparison.name, test.least_two_sided));
    }
  }
}

}  // namespace

Study make_study(const Observations& observations, const StudyOptions& options) {
  if (observations.values.empty()) throw data_error("there are no values to make statistics of.");
  require_one_window(observations);
  const Grouped groups = grouped_by_condition(observations, options.baseline);
  Study study;
  study.metric = observations.metric;
  study.window = observations.values.front().window;
  study.options = options;
  study.options.baseline = groups.names.front();
  for (std::size_t g = 0; g < groups.names.size(); ++g) {
    study.conditions.push_back(
        summary_of(observations, groups.names[g], groups.members[g], options.confidence));
    if (g > 0) {
      study.comparisons.push_back(
          comparison_of(observations, groups.names[g], groups.members[0], groups.members[g], options));
    }
  }
  adjust_for_all(study.comparisons);
  add_notes(study);
  return study;
}

}  // namespace mulligan::stats
