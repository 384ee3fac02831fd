#include "tools/commands/record_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <vector>

#include "framework/core/error.h"
#include "framework/core/stop_request.h"
#include "framework/report/run_directory.h"
#include "launch/built_from.h"
#include "tools/report_page/run_record.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;
using record::SeedResult;
using record::SeedRun;
using record::SeedStage;
using record::Submission;

// Of bits per byte, between backends or versions of a library.
constexpr double most_difference = 1e-4;

// What the scores came to, over the seeds.
struct RerunComparison {
  std::vector<std::string> measured, wrong, doubtful;
};

// Scores the model of one seed, in a folder of its own.
void score_model(const RecordArguments& options, const SeedResult& result, const SeedRun& run) {
  const RunFiles files{run.directory};
  fs::create_directories(files.directory);
  fs::copy_file(folder_path(options.verify) / artifact_name(result), files.artifact(),
                fs::copy_options::overwrite_existing);
  RecordStages stages{options.run, options.ranks, "", options.console};
  // The seconds of the budget are those of the machine that made the record.
  stages.score_overrides = {"ledger.rules=open"};
  stages.score_overrides.insert(stages.score_overrides.end(), options.run.overrides.begin(),
                                options.run.overrides.end());
  stages.make(SeedStage::adapt, run);
}

void compare(const Submission& submission, const SeedResult& result, const SeedRun& run,
             RerunComparison& all) {
  const RunFiles files{run.directory};
  const report::ResultValue scored(files.ttt_result());
  const auto again = scored.number("with_ttt/val_bpb"), tokens = scored.number("with_ttt/tokens"),
             bytes = scored.number("with_ttt/bytes");
  const std::string whose = fmt::format("seed {}", *result.seed);
  const record::Digests data = record::scored_data(files);
  for (const char* what : {"validation", "tokenizer"}) {
    if (data.at(what) == result.digest(what)) continue;
    all.wrong.push_back(fmt::format("{} was scored on another {} than submission.json states", whose, what));
  }
  if (!again || !std::isfinite(*again) || tokens != result.tokens || bytes != result.bytes) {
    all.wrong.push_back(fmt::format("{} was not scored on the {} tokens and {} bytes of submission.json",
                                    whose, *result.tokens, *result.bytes));
    return;
  }
  const double difference = *again - *result.val_bpb;
  const std::string text = fmt::format("{}: {:.8f} again, difference {:.1e}", whose, *again, difference);
  all.measured.push_back(text);
  if (!(std::abs(difference) <= most_difference)) {
    all.wrong.push_back(fmt::format("{} has {:.8f} bits per byte, not the {:.8f} of submission.json", whose,
                                    *again, *result.val_bpb));
  } else if (difference != 0 && record::scoring_environment(files) == submission.environment) {
    all.doubtful.push_back(
        fmt::format("{} differs by {:.1e} bits per byte on the same backend, where versions "
                    "of its libraries are the only honest cause",
                    whose, difference));
  }
}

}  // namespace

void require_models(const fs::path& folder) {
  const Submission submission = record::read_submission(folder / record::submission_file);
  if (!submission.own) {
    throw data_error(
        "'{}' was not made by mulligan record, so this program cannot score its models; check it without --rerun.",
        folder.string());
  }
  for (const SeedResult& result : submission.results) {
    if (fs::is_regular_file(fs::symlink_status(folder / artifact_name(result)))) continue;
    throw data_error(
        "'{}' has no '{}', so seed {} cannot be scored again; ask for a folder that was made with --artifacts.",
        folder.string(), artifact_name(result), result.seed.value_or(0));
  }
}

doctor::Finding score_again(const RecordArguments& options) {
  const StopSignals signals;
  const fs::path folder = folder_path(options.verify);
  const Submission submission = record::read_submission(folder / record::submission_file);
  const fs::path runs =
      options.runs.empty() ? fs::path(folder.string() + "_rerun") : folder_path(options.runs);
  RerunComparison all;
  for (const SeedResult& result : submission.results) {
    const SeedRun run = seed_runs(runs, {*result.seed}).front();
    score_model(options, result, run);
    compare(submission, result, run, all);
    if (result.digest("source") != built_from() && &result == &submission.results.front())
      all.doubtful.emplace_back("the program that runs was built from other source than the submission's");
  }
  doctor::Finding finding = doctor::begin_finding(
      "R13", "scores, computed again", "equal on the same backend, else within 1e-4 bits per byte");
  finding.measured = fmt::format("{}", fmt::join(all.measured, "; "));
  const std::vector<std::string>& told = all.wrong.empty() ? all.doubtful : all.wrong;
  if (told.empty()) return finding;
  finding.verdict = all.wrong.empty() ? doctor::CheckOutcome::warn : doctor::CheckOutcome::fail;
  finding.message = fmt::format("{}", fmt::join(told, "; "));
  finding.hint =
      "name the submission's validation shards and tokenizer with --set, and compare the log of each seed";
  return finding;
}

}  // namespace mulligan
