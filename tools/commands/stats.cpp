// mulligan stats, mulligan stats accept; arena: stats_arena.cpp
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/parse_number.h"
#include "framework/core/printable.h"
#include "tools/commands/tool_commands.h"
#include "tools/record/submission.h"
#include "tools/report_page/run_observations.h"
#include "tools/stats/acceptance.h"
#include "tools/stats/study.h"
#include "tools/sweep/sweep.h"

namespace mulligan {
namespace {

struct StatsArguments {
  std::vector<std::string> runs;
  std::string csv, metric, json;
  std::vector<std::string> by;
  std::int64_t target_steps = 0;
  stats::StudyOptions study;
};

struct AcceptArguments {
  std::vector<std::string> ours, reference;
  std::string metric, json;
  std::optional<double> bytes_per_token;
  stats::AcceptanceRule rule;
};

void write_if_asked(const std::string& path, const std::string& text) {
  if (!path.empty()) write_file_atomically(path, text);
}

// A sweep's folder stands for the runs in it.
std::vector<std::string> run_directories(const std::vector<std::string>& arguments) {
  std::vector<std::string> runs;
  for (const std::string& argument : arguments) {
    if (!is_sweep_folder(argument)) {
      require_finished_sweep(argument);
      runs.push_back(argument);
      continue;
    }
    for (std::string& run : runs_of_sweep(argument)) runs.push_back(std::move(run));
  }
  return runs;
}

// Runs that end long before what they are compared for: `target` steps, or (0) the end of their schedules.
std::string short_runs(const std::vector<report::RunRecord>& runs, std::int64_t target) {
  std::int64_t steps = 0, horizon = 0;
  for (const report::RunRecord& run : runs) {
    steps = std::max(steps, static_cast<std::int64_t>(run.result.number("steps", 0)));
    horizon = std::max(horizon, static_cast<std::int64_t>(run.number("schedule.horizon_steps")));
  }
  return steps == 0 ? "" : short_runs_text(steps, target > 0 ? target : horizon);
}

void make_statistics(const StatsArguments& arguments) {
  if (arguments.runs.empty()) throw config_error("name run directories, or a sweep's folder.");
  const std::vector<report::RunRecord> runs = report::read_runs(run_directories(arguments.runs));
  stats::Observations all;
  stats::StudyOptions options = arguments.study;
  if (arguments.runs.size() == 1 && arguments.by.empty() && is_sweep_folder(arguments.runs.front())) {
    SweepObservations sweep = observe_sweep(arguments.runs.front(), arguments.metric);
    all = std::move(sweep.all);
    if (options.baseline.empty()) options.baseline = sweep.baseline;
  } else {
    all = report::observe_runs(runs, arguments.metric.empty() ? report::final_metric(runs) : arguments.metric,
                               arguments.by);
  }
  const std::string doubts = report::doubts_text(runs) + short_runs(runs, arguments.target_steps);
  const stats::Study study = stats::make_study(all, options);
  const std::string text = doubts + stats::study_text(study);
  write_if_asked(arguments.csv, stats::observations_csv(all));
  nlohmann::ordered_json json = stats::study_json(study);
  if (!doubts.empty()) json["doubts"] = doubts;
  write_if_asked(arguments.json, json.dump(1) + "\n");
  fmt::print("{}", printable(text, LineBreaks::kept));
}

// Scores named on a command line.
struct NamedScores {
  std::vector<double> bpb;              // in the order of the words
  std::vector<report::RunRecord> runs;  // those that were run directories
};

std::vector<double> submitted_scores(const std::filesystem::path& file) {
  std::vector<double> bpb;
  for (const record::SeedResult& result : record::read_submission(file).results) {
    if (!result.val_bpb) throw data_error("'{}' states no val_bpb for one of its seeds.", file.string());
    bpb.push_back(*result.val_bpb);
  }
  return bpb;
}

// Each word is a number (bits per byte), a run directory or the folder of a submission. A run directory counts with its
// `metric` (empty: the last that all have); of a submission all seeds count. Throws Error if a word is none of these, or if two
// runs were not scored on the same tokens, have the same seed, or differ in other settings.
NamedScores read_scores(const std::vector<std::string>& words, const std::string& metric) {
  NamedScores scores;
  std::vector<std::vector<double>> values;  // by word; of a run directory nothing yet
  for (const std::string& word : words) {
    const std::filesystem::path submission = std::filesystem::path(word) / record::submission_file;
    if (const auto number = parse_number<double>(word)) {
      values.push_back({*number});
    } else if (std::filesystem::exists(submission)) {
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
  if (!std::ranges::all_of(scores.bpb, [](double value) { return std::isfinite(value) && value > 0; }))
    throw config_error("scores are bits per byte, finite numbers above 0.");
  return scores;
}

void decide(AcceptArguments arguments) {
  if (!arguments.metric.empty() && !arguments.metric.ends_with("_bpb")) {
    throw config_error("the rule is about bits per byte: --metric is val_bpb, quantised_bpb or ttt_bpb.");
  }
  const NamedScores ours = read_scores(arguments.ours, arguments.metric);
  const NamedScores reference = read_scores(arguments.reference, arguments.metric);
  std::vector<report::RunRecord> runs = ours.runs;
  runs.insert(runs.end(), reference.runs.begin(), reference.runs.end());
  arguments.rule.bytes_per_token =
      arguments.bytes_per_token ? *arguments.bytes_per_token : report::bytes_per_token(runs);
  if (ours.bpb.size() < 2) throw config_error("--new needs two runs or more: one run has no variance.");
  if (arguments.rule.paired && ours.bpb.size() != reference.bpb.size()) {
    throw config_error(
        "--paired needs as many values of --new as of --reference, in the order of their seeds.");
  }
  const stats::Acceptance result = stats::accept_record(ours.bpb, reference.bpb, arguments.rule);
  fmt::print("{}\n", result.decision);
  for (const std::string& note : result.notes) fmt::print("Note: {}.\n", note);
  const auto interval = [](const stats::Interval& i) { return nlohmann::ordered_json{i.low, i.high}; };
  const nlohmann::ordered_json json = {{"accepted", result.accepted},
                                       {"decision", result.decision},
                                       {"p", result.test.greater},
                                       {"degrees", result.test.degrees},
                                       {"difference_nats", result.test.difference},
                                       {"interval_nats", interval(result.test.interval)},
                                       {"difference_bpb", result.difference_bpb},
                                       {"interval_bpb", interval(result.interval_bpb)},
                                       {"bytes_per_token", arguments.rule.bytes_per_token},
                                       {"new_bpb", ours.bpb},
                                       {"reference_bpb", reference.bpb},
                                       {"notes", result.notes}};
  write_if_asked(arguments.json, json.dump(1) + "\n");
  if (!result.accepted) throw run_error("not a record by the challenge's rule.");
}

void add_accept_command(CLI::App& stats_command) {
  CLI::App* command = stats_command.add_subcommand(
      "accept", "Decides by the challenge's rule: better by at least 0.005 nats per token at p < 0.01");
  auto arguments = std::make_shared<AcceptArguments>();
  command->add_option("--new", arguments->ours, "Run directories or bits per byte of the new record")
      ->required()
      ->type_name("RUN|BPB");
  command
      ->add_option("--reference", arguments->reference,
                   "Run directories or bits per byte of the record to beat; a single number counts as exact")
      ->required()
      ->type_name("RUN|BPB");
  command->add_option(
      "--metric", arguments->metric,
      "Score of run directories: val_bpb, quantised_bpb or ttt_bpb; without it the last that all have");
  command
      ->add_option("--bytes-per-token", arguments->bytes_per_token,
                   "Bytes of text per validation token; without it those of the runs")
      ->check(CLI::PositiveNumber);
  command->add_option("--margin", arguments->rule.margin_nats, "Required improvement in nats per token")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--alpha", arguments->rule.alpha, "Limit of p")
      ->check(CLI::Range(1e-9, 0.5))
      ->capture_default_str();
  command->add_flag("--paired", arguments->rule.paired,
                    "Value i of both comes from one seed and shares its randomness");
  command->add_option("--json", arguments->json, "File that the figures are written to")->type_name("FILE");
  command->callback([arguments] { decide(*arguments); });
}

}  // namespace

std::vector<double> reference_scores(const std::vector<std::string>& words) {
  return read_scores(words, "ttt_bpb").bpb;
}

void add_stats_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "stats", "Intervals and tests over runs of several seeds: each condition, and each against a baseline");
  auto arguments = std::make_shared<StatsArguments>();
  command->add_option("runs", arguments->runs, "Run directories, or the folder of a sweep")->type_name("RUN");
  command->add_option("--csv", arguments->csv, "File that the values are written to, one row per run")
      ->type_name("FILE");
  command->add_option("--metric", arguments->metric,
                      report::run_metrics_text() + "; without it the last score that all runs have");
  command
      ->add_option("--by", arguments->by,
                   "Settings whose values make the conditions, such as train.compute_dtype; "
                   "without it all that differ")
      ->type_name("KEY");
  command->add_option("--baseline", arguments->study.baseline,
                      "Condition that the others are compared with; without it the first");
  command
      ->add_option("--margin", arguments->study.margin,
                   "Margin of the equivalence test, in the metric's unit")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option(
          "--target-steps", arguments->target_steps,
          "Steps of the training that run directories are compared for; a note says where they have far fewer")
      ->check(CLI::PositiveNumber);
  command->add_option("--confidence", arguments->study.confidence, "Confidence of the intervals")
      ->check(CLI::Range(0.5, 0.9999))
      ->capture_default_str();
  command->add_option("--json", arguments->json, "File that the figures are written to")->type_name("FILE");
  add_accept_command(*command);
  add_stats_arena_command(*command);
  command->callback([arguments, command] {
    if (command->get_subcommands().empty()) make_statistics(*arguments);
  });
}

}  // namespace mulligan
