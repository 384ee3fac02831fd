// The state of a ControlChannel. For control_channel.cpp only.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <set>

#include "framework/core/stop_request.h"
#include "framework/ranks/communicator_watch.h"
#include "framework/ranks/control_channel.h"

namespace mulligan {

// State that the caller's threads share with the loop's. The loop's thread writes answers and the verdict here.
struct ControlChannel::State {
  explicit State(const ControlOptions& options) : loop(options.silent), transfers(options.heartbeat) {}

  SocketLoop loop;
  std::unique_ptr<ControlEnd> end;  // touched on the loop's thread only
  RankProgress progress;
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint8_t> in_call{0};  // Heartbeat

  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::uint64_t, std::vector<std::string>> results;  // of calls
  std::map<std::uint64_t, std::string> values;                // of get()
  std::set<std::uint64_t> wanted;                             // requests that are still waited for
  std::uint64_t requests = 0;
  std::optional<Verdict> verdict;
  bool all_done = false;

  CommunicatorWatch transfers;

  Heartbeat pulse() const {
    const TransferCount counted = transfers.counted();
    std::uint8_t waits_in = in_call;
    if (waits_in == waits_in_nothing && progress.in_communicator > 0) waits_in = waits_in_communicator;
    return {counted.submitted,
            counted.completed,
            progress.steps,
            calls,
            progress.communicator_calls,
            waits_in,
            static_cast<std::uint8_t>(progress.long_works > 0 ? 1 : 0),
            1e-9 * static_cast<double>(progress.waited_nanoseconds)};
  }

  // Ends the run for a rank that must stop but cannot, because a call of the communicator's library does not return; also if the
  // others would wait longer. On the loop's thread.
  void look_for_blocked_stop(const ControlOptions& options) {
    const int signal = stop_signal();
    if (signal == 0 || progress.in_communicator == 0) return;
    const double seconds = SocketLoop::now() - progress.in_communicator_since;
    if (seconds < options.wedged) return;
    loop.post([this, signal, seconds] {
      end->report(
          {static_cast<std::uint8_t>(FailureCause::stopped),
           fmt::format("{} asked for it, and a call of the communicator has not returned for {:.0f} s",
                       signal_name(signal), seconds)});
    });
  }

  // Waits until `ready` or the verdict, at most `seconds`. Returns whether it is ready.
  template <typename Ready>
  bool wait(std::unique_lock<std::mutex>& lock, double seconds, Ready ready) {
    const auto done = [&] { return ready() || verdict.has_value(); };
    if (seconds < 0) {
      changed.wait(lock, done);
    } else {
      changed.wait_for(lock, std::chrono::duration<double>(seconds), done);
    }
    return ready();
  }

  void decide(const Verdict& what, const ControlOptions& options, int rank) {
    if (options.watchdog > 0) end_process_after(options.watchdog, what.error_of(rank));
    if (!options.error_file.empty() && what.code != ExitCode::interrupted) {
      try {
        write_torchelastic_error(options.error_file, what.sentence);
      } catch (const Error& error) {
        options.log(fmt::format("warning: {}", error.what()));
      }
    }
    // Both in one critical section. So a transfer that the verdict aborts never fails before the verdict is visible. A caller
    // that sees the verdict, unwinds and removes the callback finds the abort done.
    const std::lock_guard lock(mutex);
    transfers.decide(what);
    verdict = what;
    changed.notify_all();
  }
};

}  // namespace mulligan
