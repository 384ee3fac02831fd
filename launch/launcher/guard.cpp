#include "launch/launcher/guard.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "framework/core/error.h"
#include "framework/core/stop_request.h"
#include "framework/ranks/launch_agent.h"
#include "framework/ranks/wire.h"

namespace mulligan {
namespace {

std::vector<pid_t> children() {
  std::vector<pid_t> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const pid_t process = std::atoi(entry.path().filename().c_str());
    if (process > 0 && parent_of(process) == ::getpid()) found.push_back(process);
  }
  return found;
}

// From now on processes with an ended parent become children of this one, so that kill_descendants() finds them.
void adopt_orphans() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
    throw run_error("the system does not let the launcher adopt orphaned processes: {}.",
                    std::strerror(errno));
  }
}

}  // namespace

bool kill_descendants() {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (true) {
    // Their children become ours with their end; hence the loop.
    for (const pid_t process : children()) ::kill(process, SIGKILL);
    pid_t ended = 0;
    while ((ended = ::waitpid(-1, nullptr, WNOHANG)) > 0) continue;
    if (ended < 0 && errno == ECHILD) return true;
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

namespace {

constexpr int kMillisecondsBetweenLooks = 50;

void write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;  // the guard is no more
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

[[noreturn]] void be_supervisor(int line, const std::function<LaunchOutcome(int guard)>& supervise) {
  ::setpgid(0, 0);  // a terminal's ^C goes to the guard alone, which passes it on
  LaunchOutcome outcome;
  try {
    adopt_orphans();
    outcome = supervise(line);
  } catch (const Error& error) {
    outcome = {static_cast<int>(error.code()), error.what()};
  } catch (const std::exception& error) {
    outcome = {static_cast<int>(ExitCode::run_failed), std::string("internal error: ") + error.what()};
  }
  kill_descendants();
  write_all(line, to_wire(outcome));
  ::_exit(0);
}

// What the supervisor wrote at its end.
LaunchOutcome read_outcome(const std::string& told) {
  try {
    return from_wire<LaunchOutcome>(told);
  } catch (const Error&) {
    return {static_cast<int>(ExitCode::run_failed),
            "the launcher's second process, which watches the ranks, was killed; all ranks were ended."};
  }
}

LaunchOutcome be_guard(int line, pid_t supervisor) {
  std::string told;
  int passed_on = 0;
  while (true) {
    pollfd ready{line, POLLIN, 0};
    ::poll(&ready, 1, kMillisecondsBetweenLooks);
    for (; passed_on < stop_signals_noted(); ++passed_on) {
      const char signal = static_cast<char>(stop_signal());
      write_all(line, {&signal, 1});
    }
    char bytes[4096];
    const ssize_t count = ::recv(line, bytes, sizeof bytes, MSG_DONTWAIT);
    if (count > 0) told.append(bytes, static_cast<std::size_t>(count));
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) break;
  }
  ::waitpid(supervisor, nullptr, 0);
  kill_descendants();
  return read_outcome(told);
}

}  // namespace

int next_signal(int guard) {
  char signal = 0;
  const ssize_t count = ::recv(guard, &signal, 1, MSG_DONTWAIT);
  if (count == 1) return signal;
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  kill_descendants();
  ::_exit(static_cast<int>(ExitCode::run_failed));
}

LaunchOutcome run_guarded(const std::function<LaunchOutcome(int guard)>& supervise) {
  const StopSignals signals(FurtherSignals::noted);
  adopt_orphans();
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw run_error("the system refuses a pair of sockets: {}.", std::strerror(errno));
  }
  std::fflush(nullptr);
  const pid_t supervisor = ::fork();
  if (supervisor < 0) throw run_error("the system refuses a process: {}.", std::strerror(errno));
  if (supervisor == 0) {
    ::close(ends[0]);
    be_supervisor(ends[1], supervise);
  }
  ::close(ends[1]);
  const LaunchOutcome outcome = be_guard(ends[0], supervisor);
  ::close(ends[0]);
  return outcome;
}

}  // namespace mulligan
