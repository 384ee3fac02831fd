// Signals, and asking a command to stop.
//
// No thread of this process is ever interrupted by a signal: all of them are blocked everywhere, and one
// thread that does nothing else waits for those that ask for an end. A handler would not do, for the kernel
// writes its frame where the stack register points, and oneDNN's generated code uses that register for data:
// the frame lands in the middle of a matrix.
#pragma once

#include <string>

namespace mulligan {

// The first thing that a program does, while it has one thread: blocks signals for this and all later
// threads, starts the thread that waits for them, and ignores SIGPIPE and SIGXFSZ, so that writing to a
// closed pipe or beyond a file size limit is an error with a sentence. Faults (SIGSEGV, ...), job control and
// SIGQUIT stay as they are. Calling again changes nothing. Throws run_error when the system refuses a thread.
//
// Asking for an end: SIGINT, SIGTERM, and unless the process was started ignoring them (nohup) SIGHUP,
// SIGXCPU, SIGALRM, SIGUSR1 and SIGUSR2. Without a StopSignals the first of them removes the TemporaryPaths,
// prints a sentence, unless a StopSignals that has ended noted one before, and ends the
// process with ExitCode::interrupted.
void take_over_signals();

// What becomes of signals after the first.
enum class FurtherSignals { kill, noted };

// While it lives, the first signal that asks for an end is only noted: the command looks at stop_signal()
// where it can stop, saves what it has and throws. A second one kills the process at once, unless it is to be
// noted, too; not a SIGHUP, which comes in pairs when a terminal closes, nor a SIGTERM within two seconds of
// another: a batch system sends it to every process, and a launcher passes its own on. Takes over signals.
// One at a time.
class StopSignals {
 public:
  explicit StopSignals(FurtherSignals further = FurtherSignals::kill);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
};

// The first signal noted since StopSignals began, 0 for none; and how many were.
int stop_signal();
int stop_signals_noted();

// "SIGTERM"
std::string signal_name(int signal);
// Ends the process as the signal does by default.
[[noreturn]] void die_of(int signal);

// Throws an Error of ExitCode::interrupted where a signal was noted: for long work in the middle of a command
// that keeps what is worth keeping where it catches it.
void throw_if_stopping();

}  // namespace mulligan
