// How ranks meet and watch each other.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "framework/ranks/launch_environment.h"

namespace mulligan {

// All in seconds.
struct ControlOptions {
  std::string secret;                // find_secret(); needed unless all ranks meet on the loopback
  double meet = 300;                 // time until all ranks are there
  double missing_log_interval = 10;  // while waiting for ranks, the missing ones are logged at this interval
  double handshake = 5;              // a connection without an answer is dropped
  double refusal_grace =
      5;  // a refusal by a peer without the secret counts if no other process has taken the place by then
  double heartbeat = 1;
  double silent = 10;                           // a rank that sends nothing is lost
  double wedged = 60;                           // for a rank that does nothing while others wait for it
  double first_step = 600;                      // the same before its first step and during long work
  double slow = 20;                             // then a rank that others wait for gets a warning
  double watchdog = 10;                         // the process ends this long after a verdict; 0: never
  std::filesystem::path error_file;             // TORCHELASTIC_ERROR_FILE; empty: none
  std::function<void(const std::string&)> log;  // lines for the log, on another thread; may be empty
  std::function<void()> news;  // a value of put() or the verdict has come; on another thread; may be empty
};

// MULLIGAN_SECRET, or the first line of the file MULLIGAN_SECRET_FILE; empty if neither is set. Throws config_error if the file
// cannot be read or is empty.
std::string find_secret(const EnvironmentLookup& lookup);

// A new secret: random bytes as text. Throws run_error if the system has none.
std::string random_secret();

// The default secret for ranks on one machine: the first line of .mulligan/secret in the user's home folder. If that cannot be
// written, of mulligan-UID/secret in the folder of temporary files. A missing file is made of random bytes; ranks that come at the
// same time get the same one. Throws config_error if there is no such file, or if others may read or change it.
std::string user_secret(const EnvironmentLookup& lookup);

// The defaults with secret and error_file from the environment. It also sets MULLIGAN_MEET_SECONDS, MULLIGAN_SILENT_SECONDS,
// MULLIGAN_STUCK_SECONDS and MULLIGAN_FIRST_STEP_SECONDS; rank 0's values hold. Throws config_error if one is not a valid number.
ControlOptions control_options(const EnvironmentLookup& lookup);

}  // namespace mulligan
