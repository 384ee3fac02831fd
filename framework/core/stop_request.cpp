#include "framework/core/stop_request.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <mutex>
#include <thread>

#include "framework/core/error.h"
#include "framework/core/steady_time.h"
#include "framework/core/temporary_path.h"

namespace mulligan {
namespace {

// Of the order in which SIGHUP comes: noted in a StopSignals, or the end of the process.
std::mutex signal_mutex;
bool noting = false;
FurtherSignals further_signals = FurtherSignals::kill;
std::atomic<int> noted{0}, count{0};
SteadyTime noted_at;

bool ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

// Those that ask for an end. A shell without job control starts what runs in the background with SIGINT
// ignored. A SIGINT that is sent to it nevertheless counts.
sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM}) sigaddset(&set, signal);
  for (const int signal : {SIGHUP, SIGXCPU, SIGALRM, SIGUSR1, SIGUSR2}) {
    if (!ignored(signal)) sigaddset(&set, signal);
  }
  return set;
}

// All signals except faults, which must be handled where they happen, and except job control and SIGQUIT, which the
// kernel handles.
sigset_t blocked_signals() {
  sigset_t set;
  sigfillset(&set);
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGABRT, SIGTSTP, SIGTTIN,
                           SIGTTOU, SIGCONT, SIGQUIT}) {
    sigdelset(&set, signal);
  }
  return set;
}

[[noreturn]] void end_process(int signal) {
  remove_temporaries_for_good();
  // The command has heeded a signal before and is at its end: that one has its sentence.
  if (noted != 0) ::_exit(static_cast<int>(ExitCode::interrupted));
  const bool live_line = isatty(STDERR_FILENO) != 0;
  const std::string sentence = fmt::format("{}mulligan: stopped by {}; nothing half-done is left.\n",
                                           live_line ? "\r\x1b[2K" : "", signal_name(signal));
  [[maybe_unused]] const ssize_t told = ::write(STDERR_FILENO, sentence.data(), sentence.size());
  ::_exit(static_cast<int>(ExitCode::interrupted));
}

void wait_for_signals(sigset_t ending) {
  while (true) {
    int signal = 0;
    if (sigwait(&ending, &signal) != 0) continue;
    const std::lock_guard lock(signal_mutex);
    if (!noting) end_process(signal);
    if (noted == 0) {
      noted = signal;
      noted_at = std::chrono::steady_clock::now();
    } else if (signal == SIGHUP || (signal == SIGTERM && noted == SIGTERM && seconds_since(noted_at) < 2)) {
      continue;
    } else if (further_signals == FurtherSignals::kill) {
      die_of(signal);
    }
    ++count;
  }
}

}  // namespace

void die_of(int signal) {
  std::signal(signal, SIG_DFL);
  sigset_t own;
  sigemptyset(&own);
  sigaddset(&own, signal);
  pthread_sigmask(SIG_UNBLOCK, &own, nullptr);
  std::raise(signal);
  ::_exit(128 + signal);
}

void take_over_signals() {
  static std::once_flag once;
  std::call_once(once, [] {
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGXFSZ, SIG_IGN);
    const sigset_t ending = ending_signals();
    const sigset_t blocked = blocked_signals();
    pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
    try {
      std::thread(wait_for_signals, ending).detach();
    } catch (const std::system_error& error) {
      throw run_error("the system refuses a thread ({}); allow this user more of them (ulimit -u).",
                      error.code().message());
    }
  });
}

StopSignals::StopSignals(FurtherSignals further) {
  take_over_signals();
  const std::lock_guard lock(signal_mutex);
  further_signals = further;
  noted = 0;
  count = 0;
  noting = true;
}

StopSignals::~StopSignals() {
  const std::lock_guard lock(signal_mutex);
  noting = false;
}

int stop_signal() {
  return noted;
}

int stop_signals_noted() {
  return count;
}

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name ? std::string("SIG") + name : fmt::format("signal {}", signal);
}

void throw_if_stopping() {
  if (const int signal = stop_signal()) {
    throw Error(ExitCode::interrupted, fmt::format("stopped by {}.", signal_name(signal)));
  }
}

}  // namespace mulligan
