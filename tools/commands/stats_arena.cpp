// mulligan stats arena
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/printable.h"
#include "tools/commands/tool_commands.h"
#include "tools/report_page/run_observations.h"
#include "tools/stats/arena_rules.h"
#include "tools/stats/markdown_table.h"

namespace mulligan {
namespace {

using stats::ArenaRun;
using stats::ArenaStep;

// The runs of one result: run directories, or published logs.
struct ArenaSideArguments {
  std::vector<std::string> runs, logs;
  std::int64_t step = 0;  // 0: the earliest that is accepted
};

struct ArenaArguments {
  ArenaSideArguments ours, old;
  std::string metric = "val_loss", json;
};

struct ArenaSide {
  std::vector<ArenaStep> steps;
  ArenaStep result;
  std::vector<std::string> notes;
};

// Which runs were not validated at `step`.
std::vector<std::string> runs_that_lack(std::span<const ArenaRun> runs, std::int64_t step) {
  std::vector<std::string> names;
  for (const ArenaRun& run : runs) {
    if (!run.losses.contains(step)) names.push_back(run.name);
  }
  return names;
}

ArenaSide judge_side(const ArenaSideArguments& arguments, const std::string& metric) {
  if (arguments.runs.empty() == arguments.logs.empty())
    throw config_error("a result is of run directories or of files with --logs, one of both.");
  ArenaSide side;
  const std::vector<ArenaRun> runs = arguments.logs.empty()
                                         ? report::arena_runs(report::read_runs(arguments.runs), side.notes)
                                         : stats::runs_of_arena_logs(arguments.logs, metric);
  if (const auto twice = stats::same_arena_run(runs)) {
    throw data_error(
        "'{}' and '{}' have the same losses at every step, so they are one run, which counts once; name one of them.",
        twice->first, twice->second);
  }
  side.steps = stats::judge_arena(runs);
  for (const ArenaRun& run : runs) {
    const std::int64_t last = run.losses.rbegin()->first;
    const std::vector<std::string> lacking = runs_that_lack(runs, last);
    if (lacking.empty()) continue;
    side.notes.push_back(
        fmt::format("'{}' of {} runs was not validated at step {} of '{}', so that step is none of theirs",
                    lacking.front(), runs.size(), last, run.name));
    break;
  }
  if (side.steps.empty())
    throw data_error("no step was validated in all {} runs; name runs that were validated at the same steps.",
                     runs.size());
  side.result = stats::earliest_accepted(side.steps).value_or(side.steps.back());
  if (arguments.step == 0) return side;
  const auto named = std::ranges::find(side.steps, arguments.step, &ArenaStep::step);
  if (named == side.steps.end()) {
    throw data_error(
        "'{}' was not validated at step {}; name a step that all runs have, or leave it out for the earliest.",
        runs_that_lack(runs, arguments.step).front(), arguments.step);
  }
  side.result = *named;
  return side;
}

std::string deviation_text(const ArenaStep& step) {
  return step.deviation ? fmt::format("{:.5f}", *step.deviation) : "";
}

std::string side_text(const ArenaSide& side) {
  stats::Table table{{"step", "n", "mean", "sd", "(3.28 - mean) sqrt(n)", "p", "accepted"}};
  for (const ArenaStep& step : side.steps) {
    table.add({std::to_string(step.step), std::to_string(step.runs), fmt::format("{:.5f}", step.mean),
               deviation_text(step), fmt::format("{:.5f}", step.value), fmt::format("{:.2g}", step.p),
               step.accepted ? "yes" : "no"});
  }
  std::string text = table.text();
  for (const std::string& note : side.notes) text += fmt::format("Note: {}.\n", note);
  return text;
}

std::string decision(const ArenaStep& result) {
  return fmt::format("{}: {} steps, mean {:.5f} of {} run{}; (3.28 - mean) sqrt(n) = {:.5f}, {} 0.004.\n",
                     result.accepted ? "ACCEPT" : "REJECT", result.step, result.mean, result.runs,
                     result.runs == 1 ? "" : "s", result.value, result.accepted ? "at least" : "less than");
}

nlohmann::ordered_json step_json(const ArenaStep& step) {
  nlohmann::ordered_json json = {
      {"step", step.step},   {"n", step.runs}, {"mean", step.mean},        {"sd", nullptr},
      {"value", step.value}, {"p", step.p},    {"accepted", step.accepted}};
  if (step.deviation) json["sd"] = *step.deviation;
  return json;
}

nlohmann::ordered_json side_json(const ArenaSide& side) {
  nlohmann::ordered_json json = {{"result", step_json(side.result)},
                                 {"steps", nlohmann::ordered_json::array()}};
  for (const ArenaStep& step : side.steps) json["steps"].push_back(step_json(step));
  json["notes"] = side.notes;
  return json;
}

void judge(const ArenaArguments& arguments) {
  const ArenaSide ours = judge_side(arguments.ours, arguments.metric);
  std::string text = side_text(ours);
  nlohmann::ordered_json json = side_json(ours);
  text += decision(ours.result);
  if (!arguments.old.runs.empty() || !arguments.old.logs.empty()) {
    const ArenaSide old = judge_side(arguments.old, arguments.metric);
    const stats::ArenaComparison comparison = stats::compare_arena(old.result, ours.result);
    for (const std::string& note : old.notes) text += fmt::format("Note on the old result: {}.\n", note);
    text += fmt::format("{} the old result ({} steps, mean {:.5f} of {}): {:.5f}, {} 0.004 (p = {:.2g}).\n",
                        comparison.better ? "BETTER than" : "NOT SHOWN to be better than", old.result.step,
                        old.result.mean, old.result.runs, comparison.value,
                        comparison.better ? "at least" : "less than", comparison.p);
    json["old"] = side_json(old);
    json["comparison"] = {{"value", comparison.value}, {"p", comparison.p}, {"better", comparison.better}};
  }
  if (!arguments.json.empty()) write_file_atomically(arguments.json, json.dump(1) + "\n");
  fmt::print("{}", printable(text, LineBreaks::kept));
  if (!ours.result.accepted) throw run_error("no result by the rule of the optimiser benchmark.");
}

void declare_side(CLI::App& command, ArenaSideArguments& side, const std::string& prefix,
                  const std::string& whose) {
  command
      .add_option("--" + prefix + "logs", side.logs,
                  "Logs as they are published, in the place of runs" + whose)
      ->type_name("FILE");
  command
      .add_option("--" + prefix + "step", side.step,
                  "Steps of the result" + whose + "; without it the earliest that is accepted, else the last")
      ->check(CLI::PositiveNumber)
      ->type_name("STEP");
}

}  // namespace

void add_stats_arena_command(CLI::App& stats_command) {
  CLI::App* command = stats_command.add_subcommand(
      "arena",
      "Decides by the rules of Modded-NanoGPT's optimiser benchmark after how many steps runs reach 3.28");
  auto arguments = std::make_shared<ArenaArguments>();
  command->add_option("runs", arguments->ours.runs, "Run directories, all of one result")->type_name("RUN");
  command->add_option("--old", arguments->old.runs, "Run directories of the result to be better than")
      ->type_name("RUN");
  declare_side(*command, arguments->ours, "", "");
  declare_side(*command, arguments->old, "old-", " of the old one");
  command->add_option("--metric", arguments->metric, "Loss of published logs to use")
      ->type_name("NAME")
      ->capture_default_str();
  command->add_option("--json", arguments->json, "File that the figures are written to")->type_name("FILE");
  command->callback([arguments] { judge(*arguments); });
}

}  // namespace mulligan
