#include "framework/core/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>

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

// In the child, between fork and exec: async-signal-safe calls only.
[[noreturn]] void become(char* const* arguments, const Pipe& output, const Pipe& errors, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(127);  // it ended before prctl took effect
  for (const int signal : ignored_signals) std::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  ::dup2(output.writer.number(), STDOUT_FILENO);
  ::dup2(errors.writer.number(), STDERR_FILENO);
  ::execvp(arguments[0], arguments);
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

int run_program(const std::vector<std::string>& arguments, const ProgramWatch& watch) {
  const std::vector<char*> pointers = pointers_to(arguments);
  Pipe output, errors;
  if (!output.good() || !errors.good()) return -1;
  const pid_t parent = ::getpid();
  const pid_t process = ::fork();
  if (process < 0) return -1;
  if (process == 0) become(pointers.data(), output, errors, parent);
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
  const int status = child.wait();
  return WIFEXITED(status) && WEXITSTATUS(status) == 127 ? -1 : status;
}

}  // namespace mulligan
