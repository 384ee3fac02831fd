#include "launch/launcher/local_ranks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "framework/core/error.h"

namespace mulligan {
namespace {

Error refusal(const char* what) {
  return run_error("the system refuses {} for a rank: {}.", what, std::strerror(errno));
}

// The two ends of a stream: ours, which never blocks, and the rank's.
struct Stream {
  Descriptor ours, theirs;
};

void make_pipe(Stream& stream) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw refusal("a pipe");
  stream.ours = Descriptor(ends[0]);
  stream.theirs = Descriptor(ends[1]);
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
}

void make_terminal(Stream& stream) {
  stream.ours = Descriptor(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  char name[128];
  if (stream.ours.number() < 0 || ::grantpt(stream.ours.number()) != 0 ||
      ::unlockpt(stream.ours.number()) != 0 || ::ptsname_r(stream.ours.number(), name, sizeof name) != 0) {
    throw refusal("a terminal");
  }
  stream.theirs = Descriptor(::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC));
  termios settings{};
  if (stream.theirs.number() < 0 || ::tcgetattr(stream.theirs.number(), &settings) != 0) {
    throw refusal("a terminal");
  }
  settings.c_oflag &= ~static_cast<tcflag_t>(OPOST);  // the outer terminal makes the line breaks
  settings.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  ::tcsetattr(stream.theirs.number(), TCSANOW, &settings);
  copy_terminal_size(stream.ours.number());
}

// From here on in the child. Only what must be done before exec.
void use_usual_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGQUIT, SIGPIPE, SIGXFSZ, SIGCHLD}) std::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void bind_to(const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  ::sched_setaffinity(0, sizeof set, &set);  // what the system does not allow now, it takes away anyhow
}

[[noreturn]] void become(const std::string& program, const std::vector<int>& cpus, char* const* arguments,
                         char* const* environment, pid_t launcher, const Stream& output, const Stream& errors,
                         int failure) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != launcher) ::_exit(1);  // it ended before the line above
  bind_to(cpus);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  if (nothing > STDERR_FILENO) ::close(nothing);
  ::dup2(output.theirs.number(), STDOUT_FILENO);
  ::dup2(errors.theirs.number() >= 0 ? errors.theirs.number() : output.theirs.number(), STDERR_FILENO);
  use_usual_signals();
  ::execve(program.c_str(), arguments, environment);
  const int reason = errno;
  [[maybe_unused]] const ssize_t written = ::write(failure, &reason, sizeof reason);
  ::_exit(127);
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
  all.push_back(nullptr);
  return all;
}

}  // namespace

pid_t start_rank(const LaunchPlan& plan, const RankPlan& rank, const std::vector<std::string>& environment,
                 const LaunchConsole& console, bool terminals, RankOutput& output) {
  Stream out, errors, failure;
  const bool live = terminals && console.is_terminal(RankStream::output);
  const bool live_errors = terminals && console.is_terminal(RankStream::errors);
  if (live)
    make_terminal(out);
  else
    make_pipe(out);
  // On one terminal both streams are one, in the order in which they were written.
  if (!(live && live_errors)) make_pipe(errors);
  make_pipe(failure);
  const std::vector<char*> arguments = pointers(plan.command);
  const std::vector<char*> variables = pointers(environment);
  const pid_t launcher = ::getpid();
  const pid_t process = ::fork();
  if (process < 0) throw refusal("a process");
  if (process == 0) {
    become(plan.program, rank.cpus, arguments.data(), variables.data(), launcher, out, errors,
           failure.theirs.number());
  }
  ::setpgid(process, process);  // parent and child both call it, since either may come first
  failure.theirs = Descriptor();
  ::fcntl(failure.ours.number(), F_SETFL, 0);
  int reason = 0;
  if (::read(failure.ours.number(), &reason, sizeof reason) == sizeof reason) {
    ::waitpid(process, nullptr, 0);
    throw config_error("'{}' cannot be started: {}; name a command of mulligan or the path of a program.",
                       plan.program, std::strerror(reason));
  }
  output.add(std::move(out.ours), RankStream::output, live);
  if (errors.ours.number() >= 0) output.add(std::move(errors.ours), RankStream::errors, false);
  return process;
}

void copy_terminal_size(int descriptor) {
  winsize wanted{}, present{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &wanted) != 0 || ::ioctl(descriptor, TIOCGWINSZ, &present) != 0)
    return;
  if (wanted.ws_col != present.ws_col || wanted.ws_row != present.ws_row) {
    ::ioctl(descriptor, TIOCSWINSZ, &wanted);
  }
}

}  // namespace mulligan
