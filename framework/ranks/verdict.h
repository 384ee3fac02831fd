// The reason that ended a run of several ranks, decided once by rank 0 and sent to all of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <tuple>

#include "framework/core/error.h"

namespace mulligan {

struct Verdict {
  static constexpr std::uint8_t kind = 12;  // of its message (control_messages.h)
  std::int32_t culprit = -1;                // its rank; -1: no single rank
  ExitCode code = ExitCode::peer_failed;    // of the other ranks: peer_failed; bad_configuration if all
                                            // disagree; interrupted if one was stopped
  std::string sentence;
  auto fields() { return std::tie(culprit, code, sentence); }

  // The error that a rank ends with. The culprit of a failure has run_failed, unless it has an error of its own.
  Error error_of(int rank) const;
};

// Writes the verdict to the file where torchrun looks for the reason of a failure (TORCHELASTIC_ERROR_FILE). Throws as
// write_file_atomically.
void write_torchelastic_error(const std::filesystem::path& path, const std::string& sentence);

// Ends the process in `seconds` with the exit code of `error`, even if the process hangs.
void end_process_after(double seconds, const Error& error);

}  // namespace mulligan
