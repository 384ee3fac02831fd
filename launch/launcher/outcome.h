// What became of a rank, and what follows for all of them.
#pragma once

#include <string>
#include <vector>

#include "framework/core/error.h"

namespace mulligan {

// The end of a rank's process, in order of time.
struct RankEnd {
  int rank = 0;
  int status = 0;                // of waitpid
  bool stopped = false;          // the launcher had asked it to end, or killed it
  std::string host, log, words;  // words: the error it ended with, if it said one

  bool ok() const;
  // Its exit code; 1 where a signal ended it.
  int code() const;
};

// How `mulligan launch` ends. `sentence`: "" where all is well.
struct LaunchOutcome {
  int code = 0;
  std::string sentence;
  bool worth_restarting = false;  // another attempt may go better
};

// The outcome over an attempt whose ranks have all ended. Its root cause is the first rank that failed by
// itself; ranks that ended because another had (exit code 5) or because they were stopped come after it.
// `signal`: the one that asked the launcher for an end, 0 for none.
LaunchOutcome judge(const std::vector<RankEnd>& ends, int signal);

}  // namespace mulligan
