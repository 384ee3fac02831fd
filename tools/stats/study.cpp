#include "tools/stats/study.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <ranges>

#include "framework/core/error.h"
#include "tools/stats/acceptance.h"

namespace mulligan::stats {
namespace {

struct Group {
  std::string name;
  std::vector<const Observation*> members;
};

// In the order of first values, the baseline first.
std::vector<Group> grouped_by_condition(const Observations& all, const std::string& baseline) {
  std::vector<Group> groups;
  for (const Observation& value : all.values) {
    const std::string name = condition_of(all, value);
    auto found = std::ranges::find(groups, name, &Group::name);
    if (found == groups.end()) found = groups.insert(found, Group{name, {}});
    found->members.push_back(&value);
  }
  if (baseline.empty()) return groups;
  const auto found = std::ranges::find(groups, baseline, &Group::name);
  if (found == groups.end()) {
    throw config_error("there is no condition '{}' to be the baseline, only: {}.", baseline,
                       fmt::join(groups | std::views::transform(&Group::name), "; "));
  }
  std::rotate(groups.begin(), found, found + 1);
  return groups;
}

ConditionSummary summary_of(const Group& group, double confidence) {
  ConditionSummary summary;
  summary.name = group.name;
  for (const Observation* value : group.members) summary.values.push_back(value->value);
  summary.statistic = statistic_of(summary.values);
  if (group.members.size() >= fewest_reportable) summary.interval = t_interval(summary.values, confidence);
  if (group.members.size() >= fewest_bootstrapped) summary.bootstrap = bootstrap(summary.values, confidence);
  for (const std::size_t i : collapsed_values(summary.values))
    summary.collapsed.push_back(group.members[i]->run);
  return summary;
}

// Values of both by common seed; empty unless each value has a seed of its own that the other has as well.
std::pair<std::vector<double>, std::vector<double>> pairs_of(const Group& first, const Group& second) {
  std::map<std::string, double> by_seed;
  for (const Observation* value : second.members) {
    if (value->seed.empty() || !by_seed.emplace(value->seed, value->value).second) return {};
  }
  std::pair<std::vector<double>, std::vector<double>> pairs;
  for (const Observation* value : first.members) {
    const auto found = by_seed.extract(value->seed);
    if (found.empty()) return {};
    pairs.first.push_back(value->value);
    pairs.second.push_back(found.mapped());
  }
  if (!by_seed.empty()) return {};
  return pairs;
}

ConditionComparison comparison_of(const Group& baseline, const Group& group,
                                  const std::vector<double>& theirs, const std::vector<double>& ours,
                                  const StudyOptions& options) {
  ConditionComparison result;
  result.name = group.name;
  result.reportable = std::min(theirs.size(), ours.size()) >= fewest_reportable;
  if (!result.reportable) return result;
  result.shuffle = shuffle_test(theirs, ours);
  result.welch = welch_test(theirs, ours, 0, options.confidence);
  const auto [first, second] = pairs_of(baseline, group);
  result.pairs = first.size();
  if (!first.empty()) {
    result.paired = paired_test(first, second, 0, options.confidence);
    result.signs = sign_flip_test(first, second);
  }
  result.p = result.test()->two_sided;
  if (options.margin > 0) result.equivalence = equivalence_test(*result.test(), options.margin);
  return result;
}

void adjust_for_all(std::vector<ConditionComparison>& comparisons) {
  std::vector<double> p;
  for (const ConditionComparison& comparison : comparisons) {
    if (comparison.reportable) p.push_back(comparison.p);
  }
  p = holm(p);
  auto adjusted = p.begin();
  for (ConditionComparison& comparison : comparisons) {
    if (comparison.reportable) comparison.holm = *adjusted++;
  }
}

std::vector<std::string> notes_of(const Study& study) {
  std::vector<std::string> notes;
  for (const ConditionSummary& condition : study.conditions) {
    if (counts_a_run_twice(condition.values))
      notes.push_back(
          fmt::format("values of '{}' are equal to the last digit, so a run was counted more than once: its "
                      "standard deviation, interval and tests say nothing",
                      condition.name));
  }
  for (const ConditionSummary& condition : study.conditions) {
    const std::size_t runs = condition.values.size();
    if (runs < fewest_reportable)
      notes.push_back(fmt::format("'{}' has {} run{}: below three there is no interval, no gain and no test",
                                  condition.name, runs, runs == 1 ? "" : "s"));
    if (!condition.collapsed.empty())
      notes.push_back(fmt::format("'{}' has runs that stand out upwards, which count like the others: {}",
                                  condition.name, fmt::join(condition.collapsed, ", ")));
  }
  for (const ConditionComparison& comparison : study.comparisons) {
    if (comparison.reportable && comparison.permutation().least_two_sided > 0.01)
      notes.push_back(fmt::format("with this number of runs of '{}' no permutation p can be below {:.3g}",
                                  comparison.name, comparison.permutation().least_two_sided));
  }
  return notes;
}

}  // namespace

Study make_study(const Observations& observations, const StudyOptions& options) {
  if (observations.values.empty()) throw data_error("there are no values to make statistics of.");
  require_one_window(observations);
  const std::vector<Group> groups = grouped_by_condition(observations, options.baseline);
  Study study;
  study.metric = observations.metric;
  study.window = observations.values.front().window;
  study.options = options;
  study.options.baseline = groups.front().name;
  for (const Group& group : groups) {
    study.conditions.push_back(summary_of(group, options.confidence));
    if (study.conditions.size() == 1) continue;
    study.comparisons.push_back(comparison_of(groups.front(), group, study.conditions.front().values,
                                              study.conditions.back().values, options));
  }
  adjust_for_all(study.comparisons);
  study.notes = notes_of(study);
  return study;
}

}  // namespace mulligan::stats
