// mulligan record --verify FOLDER --rerun: scores the models of a submission again.
#pragma once

#include <filesystem>
#include <string>

#include "launch/commands/run_options.h"
#include "tools/doctor/finding.h"

namespace mulligan {

struct RerunOptions {
  std::filesystem::path folder;  // of the submission
  RunOptions run;                // --set and --plugin-path, such as where the validation shards are
  ConsoleOptions console;
  std::string runs;  // folder of the new scores; empty: `folder` with "_rerun" after it
  int ranks = 1;
};

// Throws data_error if the folder is not of this program, or lacks a model.
void require_models(const std::filesystem::path& folder);

// R13: scores every model with the program that runs, in processes of their own; nothing of the folder is built or
// executed. The scores must equal those of submission.json: exactly on the same backend, ranks and instruction set,
// else to 1e-4 bits per byte. Scores of a program that was built from other source are a warning. Throws what a
// process ended with. Precondition: require_models(), and the folder is sound.
doctor::Finding score_again(const RerunOptions& options);

}  // namespace mulligan
