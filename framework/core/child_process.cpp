#include "framework/core/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "framework/core/descriptor.h"
#include "framework/core/shell.h"

namespace mulligan {
namespace {

constexpr int ignored_signals[] = {SIGPIPE, SIGXFSZ};  // by take_over_signals

std::vector<char*> pointers_to(const std::vector<std::string>& arguments) {
  std::vector<char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

constexpr int poll_milliseconds = 200;

// Both ends are closed in programs that are started. Without ends if the system refuses.
struct Pipe {
  Pipe() {
    if (int ends[2]; ::pipe2(ends, O_CLOEXEC) == 0)
      reader = Descriptor(ends[0]), writer = Descriptor(ends[1]);
  }
  bool good() const { return reader.number() >= 0; }
  Descriptor reader, writer;
};

// In the child, between fork and exec: async-signal-safe calls only. `failure` takes the reason why it cannot become the program.
[[noreturn]] void become(const ProgramStart& start, char* const* arguments, char* const* environment,
                         pid_t parent, int failure) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, start.death_signal);
  if (::getppid() != parent) ::_exit(127);  // it ended before prctl took effect
  if (!start.cpus.empty()) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int cpu : start.cpus) CPU_SET(cpu, &set);
    ::sched_setaffinity(0, sizeof set, &set);  // what the system does not allow now, it takes away anyhow
  }
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  ::dup2(start.output, STDOUT_FILENO);
  ::dup2(start.errors, STDERR_FILENO);
  for (const int signal : {SIGINT, SIGTERM, SIGQUIT, SIGPIPE, SIGXFSZ, SIGCHLD}) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execvpe(start.program.c_str(), arguments, environment);
  const int reason = errno;
  [[maybe_unused]] const ssize_t written = ::write(failure, &reason, sizeof reason);
  ::_exit(127);
}

// Passes the available output to `on_output`; closes the pipe at its end.
void read_some(Pipe& pipe, const std::function<void(std::string_view)>& on_output) {
  std::array<char, 1 << 14> buffer{};
  const ssize_t count = ::read(pipe.reader.number(), buffer.data(), buffer.size());
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (count <= 0) pipe.reader = Descriptor();
  if (count > 0 && on_output) on_output({buffer.data(), static_cast<std::size_t>(count)});
}

// Ends a child whose watch throws.
class Child {
 public:
  explicit Child(pid_t process) : process_(process) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (process_ < 0) return;
    ::kill(process_, SIGTERM);
    wait();
  }
  void tell(int signal) const { ::kill(process_, signal); }
  int wait() {
    int status = 0;
    pid_t ended = -1;
    do {
      ended = ::waitpid(process_, &status, 0);
    } while (ended < 0 && errno == EINTR);
    process_ = -1;
    return ended < 0 ? -1 : status;
  }

 private:
  pid_t process_;
};

}  // namespace

void become_program(const std::vector<std::string>& arguments) {
  const std::vector<char*> pointers = pointers_to(arguments);
  sigset_t none, before;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, &before);
  for (const int signal : ignored_signals) ::signal(signal, SIG_DFL);
  execvp(pointers[0], pointers.data());
  for (const int signal : ignored_signals) ::signal(signal, SIG_IGN);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

std::string shell_quoted(std::string_view argument) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%^";
  if (!argument.empty() && argument.find_first_not_of(plain) == std::string_view::npos) {
    return std::string(argument);
  }
  std::string quoted = "'";
  for (const char c : argument) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

pid_t start_program(const ProgramStart& start) {
  const std::vector<char*> arguments = pointers_to(start.arguments);
  const std::vector<char*> variables = pointers_to(start.environment);
  Pipe failure;
  if (!failure.good()) return -1;
  const pid_t parent = ::getpid();
  const pid_t process = ::fork();
  if (process < 0) return -1;
  if (process == 0) {
    become(start, arguments.data(), start.environment.empty() ? environ : variables.data(), parent,
           failure.writer.number());
  }
  ::setpgid(process, process);  // parent and child both call it, since either may come first
  failure.writer = Descriptor();
  int reason = 0;
  if (::read(failure.reader.number(), &reason, sizeof reason) != sizeof reason) return process;
  ::waitpid(process, nullptr, 0);
  errno = reason;
  return -1;
}

int run_program(const std::vector<std::string>& arguments, const ProgramWatch& watch) {
  Pipe output, errors;
  if (!output.good() || !errors.good()) return -1;
  const pid_t process =
      start_program({arguments.front(), arguments, {}, output.writer.number(), errors.writer.number()});
  if (process < 0) return -1;
  Child child(process);
  output.writer = Descriptor();
  errors.writer = Descriptor();
  bool told = false;
  while (output.good() || errors.good()) {
    std::array<pollfd, 2> ends = {pollfd{output.reader.number(), POLLIN, 0},
                                  pollfd{errors.reader.number(), POLLIN, 0}};
    ::poll(ends.data(), ends.size(), poll_milliseconds);  // a negative descriptor is left out
    if (ends[0].revents != 0) read_some(output, watch.output);
    if (ends[1].revents != 0) read_some(errors, watch.errors);
    const int signal = watch.stop && !told ? watch.stop() : 0;
    if (signal != 0) {
      told = true;
      child.tell(signal);
    }
  }
  return child.wait();
}

}  // namespace mulligan
