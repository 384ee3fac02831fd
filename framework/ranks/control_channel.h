// ControlChannel: the HostGroup of a run of several processes, over TCP connections of all ranks to rank 0. It also detects
// failures. If a rank is gone, silent or stuck, or reports a failure, the run ends on all ranks with one verdict that names it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "framework/ranks/communicator.h"
#include "framework/ranks/control_end.h"
#include "framework/ranks/host_group.h"

namespace mulligan {

// The progress of this rank, for the others. Any thread sets it; each heartbeat carries it.
struct RankProgress {
  std::atomic<std::uint64_t> steps{0};               // done
  std::atomic<std::uint64_t> waited_nanoseconds{0};  // for transfers, in all
  std::atomic<int> long_works{0};                    // of minutes, under way, that only some ranks do
  // CommunicatorCall: the number of calls so far and at present (one in another), and the start of the present one in seconds of
  // steady_seconds().
  std::atomic<std::uint64_t> communicator_calls{0};
  std::atomic<int> in_communicator{0};
  std::atomic<double> in_communicator_since{0};
};

class ControlChannel final : public HostGroup {
 public:
  // Made by meet().
  ControlChannel(const LaunchEnvironment& environment, ControlOptions options);
  // Without finish() before it, the others count this rank as lost, unless the run has failed.
  ~ControlChannel() override;
  ControlChannel(const ControlChannel&) = delete;

  int rank() const override { return environment_.rank; }
  int world_size() const override { return environment_.world_size; }
  int local_rank() const override { return environment_.local_rank; }
  int local_size() const override { return environment_.local_size; }
  // Bytes, answers and values have at most largest_text bytes.
  std::string call(std::string_view name, std::string_view bytes, const Answer& answer) override;
  void put(const std::string& key, std::string_view value) override;
  std::string get(const std::string& key, double seconds) override;
  // The value, if it has come. Any thread, does not wait.
  std::optional<std::string> find(const std::string& key) const;

  RankProgress& progress() { return progress_; }
  // Ends a run without faults: returns when every rank has called it. Nothing may be called after it.
  void finish();

  // This machine's numeric address on the route to ranks of other machines; empty if this rank knows none.
  std::string own_address();

  // The verdict that ended the run, if there is one. Any thread, does not wait.
  std::optional<Verdict> verdict() const;
  // Watches what `key` stands for, such as a communicator, until forget(). `count` reports the progress of its transfers several times
  // per heartbeat; it may throw Error, then its last answer holds. `abort` is called once at the verdict, or before this returns if
  // there is one already. Either may be empty. Throws run_error if the system refuses a thread.
  //
  // A call of a vendor's library may never return, so all counts have a thread of their own, and all aborts another. The channel waits
  // for neither: it sends heartbeats, receives the verdict and ends the process.
  void watch(const void* key, std::function<TransferCount()> count,
             std::function<void(const Verdict&)> abort);
  // When this returns no call is running. If there is a verdict, `abort` has been called.
  void forget(const void* key);

  // Reports that this rank has failed or, by Error::code(), was interrupted. Tells rank 0 and waits a bounded time for the
  // verdict. Returns the error that this rank ends with: its own if it is the culprit, or if its configuration or data are
  // wrong; otherwise the verdict's. `cause`: communication for errors of transfers, since another rank's fault causes most of
  // them and is looked for first. Any thread.
  Error report_failure(const Error& own, FailureCause cause = FailureCause::own);

 private:
  friend std::unique_ptr<ControlChannel> meet(const LaunchEnvironment& environment, ControlOptions options);
  // A message to this rank's end.
  template <typename Message>
  void tell(const Message& message);
  // On the loop's thread.
  void take(const ControlMessage& message);
  void decide(const Verdict& verdict);
  Heartbeat pulse() const;
  void look_for_blocked_stop();
  // Waits until `ready` or the verdict, at most `seconds`, of any length if negative. Returns whether it is ready.
  template <typename Ready>
  bool wait(std::unique_lock<std::mutex>& lock, double seconds, Ready ready);

  struct Watched {
    std::function<TransferCount()> count;
    std::function<void(const Verdict&)> abort;  // empty after its call has begun
    TransferCount counted = {};
  };
  // On threads of their own.
  void count_transfers();
  void abort_transfers();
  bool owes_abort(const Watched& one) const { return aborting_ == &one || (verdict_ && one.abort); }

  LaunchEnvironment environment_;
  ControlOptions options_;
  SocketLoop loop_;
  std::unique_ptr<ControlEnd> end_;  // touched on the loop's thread only
  RankProgress progress_;
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<std::uint8_t> in_call_{0};  // Heartbeat
  bool met_ = false;                      // all ranks are there
  mutable std::mutex mutex_;              // guards what follows
  std::condition_variable changed_;
  std::optional<std::vector<std::string>> result_;  // of the running call
  std::map<std::string, std::string> values_;
  std::optional<Verdict> verdict_;
  bool all_done_ = false, ends_ = false;
  std::map<const void*, Watched> watched_;
  const Watched *counting_ = nullptr, *aborting_ = nullptr;  // which are called now
  std::thread counter_, aborter_;
};

// While it lives, this rank is in a call of the communicator's library. The call may wait for other ranks or never
// return. Meanwhile this rank delays no other rank by work of its own.
class CommunicatorCall {
 public:
  explicit CommunicatorCall(ControlChannel* channel);  // null: calls are not counted
  ~CommunicatorCall() {
    if (progress_) --progress_->in_communicator;
  }
  CommunicatorCall(const CommunicatorCall&) = delete;

 private:
  RankProgress* progress_;
};

// Brings the ranks of a run together and returns when all are there. Throws config_error if they cannot belong to one run (number
// of ranks, secret, build, two processes of one rank). Throws Error of ExitCode::peer_failed if some do not come in time, and of
// ExitCode::interrupted on a signal (stop_request.h).
std::unique_ptr<ControlChannel> meet(const LaunchEnvironment& environment, ControlOptions options);

}  // namespace mulligan
