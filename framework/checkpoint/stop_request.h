// Asking a run to stop: SIGINT and SIGTERM become a flag that training looks at between steps.
#pragma once

#include <csignal>

namespace mulligan {

// While it lives, the first SIGINT or SIGTERM is only noted; a second one of the same kind ends the process
// as usual. The handlers from before come back with its end. One at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  struct sigaction interrupt_before_ {
  }, terminate_before_{};
};

// The signal noted since StopSignals began, 0 for none.
int stop_signal();

}  // namespace mulligan
