#include "launch/launcher/outcome.h"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>

#include "framework/core/stop_request.h"

namespace mulligan {
namespace {

constexpr int kInterrupted = static_cast<int>(ExitCode::interrupted);
constexpr int kPeerFailed = static_cast<int>(ExitCode::peer_failed);

// How bad an end is: the lower, the nearer to the cause. 0: failed by itself.
int distance_from_cause(const RankEnd& end) {
  if (end.ok()) return 4;
  if (end.stopped) return 3;
  if (end.code() == kPeerFailed) return 1;
  return end.code() == kInterrupted ? 2 : 0;
}

std::string sentence_of(const RankEnd& end) {
  std::string how;
  if (WIFSIGNALED(end.status)) {
    how = fmt::format("was ended by {}", signal_name(WTERMSIG(end.status)));
    if (WTERMSIG(end.status) == SIGKILL) how += " (the system kills so where memory runs out)";
  } else {
    how = fmt::format("failed with exit code {}", WEXITSTATUS(end.status));
  }
  const std::string words = end.words.empty() ? "" : fmt::format(" ({})", end.words);
  return fmt::format("rank {} on {} {}{}; its log is {}.", end.rank, end.host, how, words, end.log);
}

// Asked to end: what a rank makes of it is its end, unless it failed at that by itself.
LaunchOutcome judge_stopped(const std::vector<RankEnd>& ends, int signal) {
  if (std::ranges::all_of(ends, &RankEnd::ok)) return {};
  for (const RankEnd& end : ends) {
    const bool as_asked = end.ok() || end.code() == kInterrupted || end.code() == kPeerFailed;
    if (!as_asked && WIFEXITED(end.status)) return {end.code(), sentence_of(end), false};
  }
  const auto killed = std::ranges::count_if(
      ends, [](const RankEnd& end) { return WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGKILL; });
  return {kInterrupted,
          killed == 0 ? fmt::format("stopped by {}, and with it all ranks.", signal_name(signal))
                      : fmt::format("stopped by {}; {} of {} ranks had to be killed.", signal_name(signal),
                                    killed, ends.size()),
          false};
}

}  // namespace

bool RankEnd::ok() const {
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int RankEnd::code() const {
  return WIFEXITED(status) ? WEXITSTATUS(status) : static_cast<int>(ExitCode::run_failed);
}

LaunchOutcome judge(const AttemptEnd& end) {
  if (end.signal != 0) return judge_stopped(end.ranks, end.signal);
  const std::vector<RankEnd>& ends = end.ranks;
  const auto cause = std::ranges::min_element(ends, {}, distance_from_cause);
  if (cause == ends.end() || cause->ok()) return {};
  const int code = cause->code();
  const bool again = code != static_cast<int>(ExitCode::bad_configuration) &&
                     code != static_cast<int>(ExitCode::bad_data) && code != kInterrupted;
  return {code, sentence_of(*cause), again};
}

}  // namespace mulligan
