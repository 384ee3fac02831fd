// What became of a rank, and what follows for all of them.
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "framework/core/error.h"

namespace mulligan {

// The end of a rank's process, in order of time.
struct RankEnd {
  int rank = 0;
  int status = 0;                // of waitpid
  bool stopped = false;          // the launcher had asked it to end, or killed it
  double seconds = 0;            // since the start of the attempt
  std::string host, log, words;  // words: the error it ended with, if it said one

  bool ok() const;
  // Its exit code; 1 where a signal ended it.
  int code() const;
  auto fields() { return std::tie(rank, status, stopped, seconds, host, log, words); }
};

// All ranks have ended, in this order. Launchers tell it each other (framework/ranks/wire.h).
struct AttemptEnd {
  int signal = 0;  // that asked a launcher for an end, 0 for none
  std::vector<RankEnd> ranks;
  auto fields() { return std::tie(signal, ranks); }
};

// How `mulligan launch` ends. `sentence`: "" where all is well.
struct LaunchOutcome {
  int code = 0;
  std::string sentence;
  bool worth_restarting = false;  // another attempt may go better
  auto fields() { return std::tie(code, sentence, worth_restarting); }
};

// What follows from an attempt. Its root cause is the first rank that failed by itself; ranks that ended
// because another had (exit code 5) or because they were stopped come after it.
LaunchOutcome judge(const AttemptEnd& end);

}  // namespace mulligan
