// The control channel's calls into the communicator's library: the progress of transfers, and their abort at a verdict. A call
// of a vendor's library may never return, so each of the two has a thread of its own. The channel waits for neither: it sends
// heartbeats, receives the verdict and ends the process.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "framework/ranks/communicator.h"
#include "framework/ranks/verdict.h"

namespace mulligan {

class CommunicatorWatch {
 public:
  using Count = std::function<TransferCount()>;
  using OnVerdict = std::function<void(const Verdict&)>;

  explicit CommunicatorWatch(double heartbeat) : pause_(heartbeat / 4) {}
  ~CommunicatorWatch();  // waits for running calls
  CommunicatorWatch(const CommunicatorWatch&) = delete;

  // Sets a function that is called several times per heartbeat; an empty one removes it. Waits for a running call of the former
  // one. Throws run_error if the system refuses a thread.
  void count_transfers(Count count);
  // The last answer; does not wait.
  TransferCount counted() const;

  // Sets a function that is called once at the verdict, or before this returns if there is one already. An empty one removes it:
  // then, if there is a verdict, the former one has been called, and no call is running. Throws as count_transfers().
  void on_verdict(OnVerdict callback);
  // Does not wait.
  void decide(const Verdict& verdict);

 private:
  void count();
  void abort();
  bool owes_call() const { return verdict_ && callback_ && !called_; }

  const double pause_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;

  Count count_;
  bool counting_ = false;
  TransferCount counted_;

  OnVerdict callback_;
  std::optional<Verdict> verdict_;
  bool calling_ = false, called_ = false;

  std::thread counter_, aborter_;
};

}  // namespace mulligan
