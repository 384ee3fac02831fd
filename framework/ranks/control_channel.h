// ControlChannel: the HostGroup of a run of several processes, over TCP connections of all ranks to rank 0.
// It also finds out when the run has failed: a rank that is gone, says nothing, stands still or reports a
// failure ends the run on all of them, with one verdict that names it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "framework/ranks/communicator.h"
#include "framework/ranks/control_end.h"
#include "framework/ranks/host_group.h"

namespace mulligan {

// How far this rank is, for the others. Set by any thread; told with each heartbeat.
struct RankProgress {
  std::atomic<std::uint64_t> steps{0};               // that are done
  std::atomic<std::uint64_t> waited_nanoseconds{0};  // for transfers, in all
  std::atomic<int> long_works{0};                    // LongWork
  // CommunicatorCall: how many there were, how many there are now (one in another), and since when, in
  // seconds of SocketLoop::now().
  std::atomic<std::uint64_t> communicator_calls{0};
  std::atomic<int> in_communicator{0};
  std::atomic<double> in_communicator_since{0};
};

class ControlChannel final : public HostGroup {
 public:
  // meet() makes it.
  ControlChannel(const LaunchEnvironment& environment, ControlOptions options);
  // Without finish() before it the others take this rank for lost, unless the run has failed.
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

  RankProgress& progress();
  // Asked with each heartbeat, on a thread of its own, how far this rank's transfers are; may throw Error, then
  // the last answer stands. An empty one takes it away; when that returns no call is under way.
  void count_transfers(std::function<TransferCount()> count);

  // The end of a run without faults: returns when every rank has come here. Nothing may be called after it.
  void finish();

  // This machine's address, in numbers, on the way from here to ranks of other machines; empty where this
  // rank knows of none.
  std::string own_address();

  // What ended the run, if anything has. Any thread, does not wait.
  std::optional<Verdict> verdict() const;
  // Called once at the verdict, or before this returns where there is one already, on a thread of its own: for
  // aborting transfers. An empty one takes it away; when that returns no call is under way.
  void on_verdict(std::function<void(const Verdict&)> callback);

  // This rank has failed (or, by Error::code(), was interrupted): tells rank 0 and waits a bounded time for
  // the verdict. Returns what this rank is to end with: its own error when it is the culprit or its
  // configuration or data are wrong, otherwise the verdict's. `cause`: communication for errors of transfers,
  // which are mostly another rank's fault; the real one is looked for first. Any thread.
  Error report_failure(const Error& own, FailureCause cause = FailureCause::own);
  Error report_failure(const std::string& sentence) {
    return report_failure(Error(ExitCode::run_failed, sentence));
  }

 private:
  struct State;
  void wait_until_all_are_there();
  std::vector<std::string> call(CallKind kind, std::string_view bytes);
  friend std::unique_ptr<ControlChannel> meet(const LaunchEnvironment& environment, ControlOptions options);

  LaunchEnvironment environment_;
  ControlOptions options_;
  std::unique_ptr<State> state_;
};

// While it lives, this rank may keep the others waiting for as long as before its first step: for work of
// minutes that only some ranks do.
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
  explicit CommunicatorCall(RankProgress& progress);
  ~CommunicatorCall() { --progress_.in_communicator; }
  CommunicatorCall(const CommunicatorCall&) = delete;

 private:
  RankProgress& progress_;
};

// Brings the ranks of a run together; returns when all are there. Throws config_error where they cannot be of
// one run (number of ranks, secret, build, two of one rank), Error of ExitCode::peer_failed when some do not
// come in time, and of ExitCode::interrupted on a signal (stop_request.h).
std::unique_ptr<ControlChannel> meet(const LaunchEnvironment& environment, ControlOptions options);

}  // namespace mulligan
