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
#include <set>
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
  std::atomic<int> long_works{0};                    // LongWork
  // CommunicatorCall: the number of calls so far and at present (one in another), and the start of the present one in seconds of
  // steady_seconds().
  std::atomic<std::uint64_t> communicator_calls{0};
  std::atomic<int> in_communicator{0};
  std::atomic<double> in_communicator_since{0};
};

// The control channel's calls into the libraries of communicators: the progress of transfers, and their abort at a verdict. A call
// of a vendor's library may never return, so each of the two has a thread of its own. The channel waits for neither: it sends
// heartbeats, receives the verdict and ends the process.
class CommunicatorWatch {
 public:
  using Count = std::function<TransferCount()>;
  using OnVerdict = std::function<void(const Verdict&)>;

  explicit CommunicatorWatch(double heartbeat) : pause_(heartbeat / 4) {}
  ~CommunicatorWatch() { end(); }
  CommunicatorWatch(const CommunicatorWatch&) = delete;

  // As those of ControlChannel.
  void watch(const void* key, Count count, OnVerdict abort);
  void forget(const void* key);
  // The last answers, added up; does not wait.
  TransferCount counted() const;
  // Does not wait.
  void decide(const Verdict& verdict);
  // Waits for running calls. No other begins.
  void end();

 private:
  struct Watched {
    Count count;
    OnVerdict abort;
    bool aborted;  // or has no such function
    TransferCount counted = {};
  };
  void count();
  void abort();
  bool owes_abort(const Watched& one) const { return aborting_ == &one || (verdict_ && !one.aborted); }

  const double pause_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;
  std::map<const void*, Watched> watched_;
  const Watched *counting_ = nullptr, *aborting_ = nullptr;  // which are called now
  std::optional<Verdict> verdict_;
  std::thread counter_, aborter_;
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
  std::vector<std::string> all_gather(std::string_view bytes) override;
  std::string broadcast(std::string_view bytes) override;
  void barrier() override;
  std::string consult(std::string_view bytes, const Answer& answer) override;
  // A value or key is at most largest_message bytes.
  void put(const std::string& key, std::string_view value) override;
  std::string get(const std::string& key, double seconds) override;

  RankProgress& progress() { return progress_; }
  // Ends a run without faults: returns when every rank has called it. Nothing may be called after it.
  void finish();

  // This machine's numeric address on the route to ranks of other machines; empty if this rank knows none.
  std::string own_address();

  // The verdict that ended the run, if there is one. Any thread, does not wait.
  std::optional<Verdict> verdict() const;
  // Watches what `key` stands for, such as a communicator, until forget(). `count` reports the progress of its transfers several times
  // per heartbeat; it may throw Error, then its last answer holds. `abort` is called once at the verdict, or before this returns if
  // there is one already. Each has a thread of its own, and may be empty. Throws run_error if the system refuses a thread.
  void watch(const void* key, CommunicatorWatch::Count count, CommunicatorWatch::OnVerdict abort);
  // When this returns no call is running. If there is a verdict, `abort` has been called.
  void forget(const void* key);

  // Reports that this rank has failed or, by Error::code(), was interrupted. Tells rank 0 and waits a bounded time for the
  // verdict. Returns the error that this rank ends with: its own if it is the culprit, or if its configuration or data are
  // wrong; otherwise the verdict's. `cause`: communication for errors of transfers, since another rank's fault causes most of
  // them and is looked for first. Any thread.
  Error report_failure(const Error& own, FailureCause cause = FailureCause::own);

 private:
  void wait_until_all_are_there();
  std::vector<std::string> call(CallKind kind, std::string_view bytes);
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

  LaunchEnvironment environment_;
  ControlOptions options_;
  SocketLoop loop_;
  std::unique_ptr<ControlEnd> end_;  // touched on the loop's thread only
  RankProgress progress_;
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<std::uint8_t> in_call_{0};  // Heartbeat
  mutable std::mutex mutex_;              // guards what follows, which the loop's thread writes
  std::condition_variable changed_;
  std::map<std::uint64_t, std::vector<std::string>> results_;  // of calls
  std::map<std::uint64_t, std::string> values_;                // of get()
  std::set<std::uint64_t> wanted_;                             // requests that are still waited for
  std::uint64_t requests_ = 0;
  std::optional<Verdict> verdict_;
  bool all_done_ = false;
  CommunicatorWatch transfers_;
};

// While it lives, this rank may delay the others for as long as before its first step. For work of minutes that only some ranks
// do.
class LongWork {
 public:
  explicit LongWork(RankProgress& progress) : progress_(progress) { ++progress_.long_works; }
  ~LongWork() { --progress_.long_works; }
  LongWork(const LongWork&) = delete;

 private:
  RankProgress& progress_;
};

// While it lives, this rank is in a call of the communicator's library. The call may wait for other ranks or never
// return. Meanwhile this rank delays no other rank by work of its own.
class CommunicatorCall {
 public:
  explicit CommunicatorCall(RankProgress* progress);  // null: calls are not counted
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
