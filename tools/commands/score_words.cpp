#include "tools/commands/score_words.h"

#include <charconv>
#include <filesystem>
#include <optional>

#include "framework/core/error.h"
#include "tools/record/submission.h"
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
    report::require_one_condition(scores.runs);
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
