#include "framework/checkpoint/stop_request.h"

namespace mulligan {
namespace {

volatile std::sig_atomic_t noted_signal = 0;

void note(int signal) {
  noted_signal = signal;
}

}  // namespace

StopSignals::StopSignals() {
  noted_signal = 0;
  struct sigaction action {};
  action.sa_handler = note;
  // SA_RESETHAND: the second signal finds the default action, for a run that hangs.
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &interrupt_before_);
  sigaction(SIGTERM, &action, &terminate_before_);
}

StopSignals::~StopSignals() {
  sigaction(SIGINT, &interrupt_before_, nullptr);
  sigaction(SIGTERM, &terminate_before_, nullptr);
}

int stop_signal() {
  return noted_signal;
}

}  // namespace mulligan
