// mulligan record: its arguments, and the parts that lie in files of their own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "launch/commands/run_options.h"
#include "tools/cost/strict_start.h"
#include "tools/doctor/finding.h"
#include "tools/record/seed_run.h"

namespace mulligan {

struct RecordArguments {
  RunOptions run;
  ConsoleOptions console;
  std::vector<std::int64_t> seeds;
  std::string out, runs, source = ".", verify, json, card;
  int ranks = 1;
  record::Submission about;
  std::vector<std::string> reference;
  record::Comparison comparison;
  bool ship_artifacts = false, rerun = false, dry_run = false;
};

// As train does for its ranks: the parent must know the configuration that they train.
void set_micro_batches(RunOptions& run, int ranks);

// The folder of the runs: `named`, or, if that is empty, run.directory followed by "_record".
std::filesystem::path folder_of_runs(const RunOptions& run, const std::string& named);

// A run and its log for each seed, in `folder`.
std::vector<record::SeedRun> seed_runs(const std::filesystem::path& folder,
                                       const std::vector<std::int64_t>& seeds);

// All runs in `folder` are made by one program: what it was built from stands next to them. Throws config_error.
void require_one_program(const std::filesystem::path& folder);

// A path without a separator at its end.
std::filesystem::path folder_path(const std::string& path);

struct RecordStages {
  const RunOptions& run;   // the configuration, with overrides that hold for every seed
  int ranks = 1;           // of training and test-time training, on this machine
  std::string source;      // tree whose code is counted
  ConsoleOptions console;  // where the stages' lines go besides the seed's log
  std::vector<std::string> score_overrides =
      {};  // settings of test-time training that the artifact has otherwise

  // The configuration of this seed's run: after the user's overrides strict rules, its seed and its folder.
  LoadedConfig load(const record::SeedRun& run) const;
  std::vector<SettingsFrom> settings(const record::SeedRun& run) const;
  // Does a stage from where it was left; what it says goes to the end of the seed's log. Throws what the
  // command ended with, naming seed and stage; where a signal was noted (StopSignals), an Error of
  // ExitCode::interrupted once the stage has saved what it has.
  void make(record::SeedStage stage, const record::SeedRun& run) const;
};

// The rules of a record, then those of strict_rules_at_start(). Compares the training text with the validation text and resolves
// the plugins' keys in `loaded`. `track` is that of --track.
std::vector<StrictRule> record_rules(LoadedConfig& loaded, PluginHost& host, const std::string& track,
                                     const StrictStartOptions& start);

// --verify FOLDER --rerun. Throws data_error if the folder is not of this program, or lacks a model.
void require_models(const std::filesystem::path& folder);
// R13: scores every model with the program that runs, in processes of their own; nothing of the folder is built or
// executed. The scores must equal those of submission.json: exactly on the same backend, ranks and instruction set,
// else to 1e-4 bits per byte. Scores of a program that was built from other source are a warning. Throws what a
// process ended with. Precondition: require_models(), and the folder is sound.
doctor::Finding score_again(const RecordArguments& arguments);

}  // namespace mulligan
