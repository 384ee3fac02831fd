// What ended a run of several ranks, decided once and known to all of them.
#pragma once

#include <filesystem>
#include <string>

#include "framework/core/error.h"

namespace mulligan {

struct Verdict {
  int culprit = -1;                       // its rank; -1: no single one
  ExitCode code = ExitCode::peer_failed;  // what the other ranks end with: peer_failed, bad_configuration
                                          // where all of them disagree, interrupted where one was stopped
  std::string sentence;

  // What a rank ends with. The culprit of a failure: run_failed, unless it has an error of its own.
  Error error_of(int rank) const;
};

// Writes the verdict where torchrun looks for the reason of a failure
// (TORCHELASTIC_ERROR_FILE). Throws as write_file_atomically.
void write_torchelastic_error(const std::filesystem::path& path, const std::string& sentence);

// Ends the process in `seconds` with the exit code of `error`, whatever it hangs in.
void end_process_after(double seconds, const Error& error);

}  // namespace mulligan
