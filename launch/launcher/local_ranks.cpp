#include "launch/launcher/local_ranks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <utility>

#include "framework/core/child_process.h"
#include "framework/core/error.h"
#include "framework/report/machine.h"

namespace mulligan {
namespace {

Error refusal(const char* what) {
  return run_error("the system refuses {} for a rank: {}.", what, std::strerror(errno));
}

// Gives a rank's terminal the size of this process's. `descriptor`: this process's side of it.
void copy_terminal_size(int descriptor) {
  winsize wanted{}, present{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &wanted) != 0 || ::ioctl(descriptor, TIOCGWINSZ, &present) != 0)
    return;
  if (wanted.ws_col != present.ws_col || wanted.ws_row != present.ws_row) {
    ::ioctl(descriptor, TIOCSWINSZ, &wanted);
  }
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

// Starts the command of `plan` on the CPUs of `rank`. Its output goes to `output`. It is killed when the calling thread ends. With
// `terminals`, a stream that is a terminal here is one for the process, too. Throws run_error if the system refuses, config_error if there
// is no such program.
pid_t start_rank(const LaunchPlan& plan, const RankPlan& rank, std::vector<std::string> environment,
                 const LaunchConsole& console, bool terminals, RankOutput& output) {
  Stream out, errors;
  const bool live = terminals && console.is_terminal(RankStream::output);
  const bool live_errors = terminals && console.is_terminal(RankStream::errors);
  if (live)
    make_terminal(out);
  else
    make_pipe(out);
  // On one terminal both streams are one, in the order in which they were written.
  const bool one_stream = live && live_errors;
  if (!one_stream) make_pipe(errors);
  const pid_t process =
      start_program({plan.program, plan.command, std::move(environment), out.theirs.number(),
                     (one_stream ? out : errors).theirs.number(), rank.cpus, SIGKILL});
  const bool refused = errno == EAGAIN || errno == ENOMEM || errno == EMFILE || errno == ENFILE;
  if (process < 0 && refused) throw refusal("a process");
  if (process < 0) {
    throw config_error("'{}' cannot be started: {}; name a command of mulligan or the path of a program.",
                       plan.program, std::strerror(errno));
  }
  output.add(std::move(out.ours), RankStream::output, live);
  if (!one_stream) output.add(std::move(errors.ours), RankStream::errors, false);
  return process;
}

}  // namespace

void LocalRanks::start(int attempt, int port) {
  const auto folder = std::filesystem::path(plan_.logs) / fmt::format("attempt_{}", attempt);
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) {
    throw run_error("the folder '{}' cannot be made: {}; choose another with --log-dir.", folder.string(),
                    failed.message());
  }
  ranks_.clear();
  ends_.clear();
  terminate_at_.reset();
  kill_at_.reset();
  started_ = Clock::now();
  for (const RankPlan& rank : plan_.ranks) {
    const int shown = (rank.rank == 0 ? 3 : plan_.tee) & ~plan_.redirects;
    RankOutput output(rank.rank, shown, folder / fmt::format("rank_{:04}.log", rank.rank), console_);
    output.log_line(fmt::format("# {}: rank {} of {} on {}, attempt {}, run {}", utc_time(std::time(nullptr)),
                                rank.rank, plan_.world_size, plan_.host, attempt, plan_.run_id));
    output.flush_log();
    const pid_t process =
        start_rank(plan_, rank, rank_environment(rank_variables(plan_, rank, attempt, port)), console_,
                   rank.rank == 0 && shown == 3, output);
    ranks_.push_back({rank.rank, process, std::move(output)});
  }
}

void LocalRanks::send(int signal) {
  for (Rank& rank : ranks_) {
    if (rank.process == 0) continue;
    rank.stopped = true;
    ::kill(signal == SIGKILL ? -rank.process : rank.process, signal);  // the whole group
    // A stopped process (SIGSTOP) would not notice.
    if (signal != SIGKILL) ::kill(rank.process, SIGCONT);
  }
}

void LocalRanks::forward(int signal) {
  send(signal);
  terminate_at_.reset();
  if (!kill_at_) kill_at_ = Clock::now() + kSaving;
}

void LocalRanks::stop() {
  if (!terminate_at_ && !kill_at_) terminate_at_ = Clock::now() + kOwnVerdict;
}

void LocalRanks::watch(std::vector<pollfd>& descriptors) const {
  if (console_.full()) return;
  for (const Rank& rank : ranks_) {
    for (const int descriptor : rank.output.descriptors()) descriptors.push_back({descriptor, POLLIN, 0});
  }
}

void LocalRanks::read() {
  if (console_.full()) return;
  for (Rank& rank : ranks_) {
    if (rank.number == 0 && rank.process != 0 && !rank.output.descriptors().empty()) {
      copy_terminal_size(rank.output.descriptors().front());
    }
    const bool failed_before = rank.output.log_failed();
    rank.output.read();
    if (rank.output.log_failed() && !failed_before) {
      console_.note(fmt::format("the log {} cannot be written any more; the rank goes on without.",
                                rank.output.log_path().string()));
    }
  }
}

void LocalRanks::reap() {
  int status = 0;
  // -1: orphans that were adopted end here, too.
  for (pid_t process = 0; (process = ::waitpid(-1, &status, WNOHANG)) > 0;) {
    for (Rank& rank : ranks_) {
      if (rank.process == process) note_end(rank, status);
    }
  }
}

void LocalRanks::note_end(Rank& rank, int status) {
  ::kill(-rank.process, SIGKILL);  // what it left running in its group
  rank.process = 0;
  rank.output.finish();
  RankEnd end{rank.number,
              status,
              rank.stopped,
              std::chrono::duration<double>(Clock::now() - started_).count(),
              plan_.host,
              rank.output.log_path().string(),
              rank.output.last_error()};
  if (!end.ok() && !end.stopped) stop();
  ends_.push_back(std::move(end));
}

int LocalRanks::act_when_due() {
  if (!running()) return -1;
  const auto now = Clock::now();
  if (terminate_at_ && now >= *terminate_at_) {
    terminate_at_.reset();
    kill_at_ = now + kSaving;
    send(SIGTERM);
  }
  if (kill_at_ && now >= *kill_at_) {
    kill_at_ = now + kSaving;  // again, should one have been started meanwhile
    console_.note(fmt::format("not all ranks ended within {} seconds of being asked; they are killed.",
                              kSaving.count()));
    kill_all();
  }
  const std::optional<Clock::time_point> next = terminate_at_ ? terminate_at_ : kill_at_;
  if (!next) return -1;
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(*next - now).count());
}

bool LocalRanks::running() const {
  return std::ranges::any_of(ranks_, [](const Rank& rank) { return rank.process != 0; });
}

bool LocalRanks::failed() const {
  return std::ranges::any_of(ends_, [](const RankEnd& end) { return !end.ok() && !end.stopped; });
}

}  // namespace mulligan
