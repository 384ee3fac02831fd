#include "tools/commands/score_words.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>

#include "framework/core/error.h"
#include "tools/record/submission.h"
#include "tools/report_page/comparison.h"
#include "tools/report_page/run_observations.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

std::optional<double> number_of(const std::string& word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return {};
  return value;
}

std::vector<double> submitted_scores(const fs::path& file) {
  std::vector<double> bpb;
  for (const record::SeedResult& result : record::read_submission(file).results) {
    if (!result.val_bpb) throw data_error("'{}' states no val_bpb for one of its seeds.", file.string());
    bpb.push_back(*result.val_bpb);
  }
  return bpb;
}

// Runs of one condition have the same settings but for the seed, and no two the same seed: otherwise their spread is not
// that of chance.
void require_one_condition(const std::vector<report::RunRecord>& runs) {
  const report::Comparison comparison = report::compare(runs);
  for (const report::ComparedKey& key : comparison.keys) {
    if (key.key == "run.seed") continue;
    const auto other = std::ranges::find_if(key.values, [&](const auto& v) { return v != key.values[0]; });
    if (other == key.values.end()) continue;
    const auto at = static_cast<std::size_t>(other - key.values.begin());
    throw config_error(
        "'{}' has {} = {} and '{}' has {}, so they are not runs of one condition; give runs that differ in run.seed alone.",
        runs[0].files.directory.string(), key.key, key.values[0], runs[at].files.directory.string(), *other);
  }
  std::map<std::string, std::string> by_seed;
  for (const report::RunRecord& run : runs) {
    const auto [first, is_new] = by_seed.emplace(run.setting("run.seed"), run.files.directory.string());
    if (!is_new)
      throw config_error(
          "'{}' and '{}' both have run.seed = {}, which counts once; give runs of different seeds.",
          first->second, run.files.directory.string(), first->first);
  }
}

}  // namespace

NamedScores read_scores(const std::vector<std::string>& words, const std::string& metric) {
  NamedScores scores;
  std::vector<std::vector<double>> values;  // by word; of a run directory nothing yet
  for (const std::string& word : words) {
    const fs::path submission = fs::path(word) / record::submission_file;
    if (const std::optional<double> number = number_of(word)) {
      values.push_back({*number});
    } else if (fs::exists(submission)) {
      values.push_back(submitted_scores(submission));
    } else {
      values.emplace_back();
      scores.runs.push_back(report::read_run(word));
    }
  }
  std::vector<double> of_runs;
  if (!scores.runs.empty()) {
    report::require_no_doubts(scores.runs);
    require_one_condition(scores.runs);
    const stats::Observations all =
        report::observe_runs(scores.runs, metric.empty() ? report::final_metric(scores.runs) : metric);
    stats::require_one_window(all);
    for (const stats::Observation& value : all.values) of_runs.push_back(value.value);
  }
  auto next = of_runs.begin();
  for (std::vector<double>& of_word : values) {
    if (of_word.empty()) of_word.push_back(*next++);
    scores.bpb.insert(scores.bpb.end(), of_word.begin(), of_word.end());
  }
  return scores;
}

}  // namespace mulligan
