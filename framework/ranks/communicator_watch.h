// The calls that the control channel makes into the communicator's library: how far transfers are, and their
// abort at a verdict. A call of a vendor's library may never return, so each of the two has a thread of its
// own, and the channel waits for neither: it goes on beating, hears the verdict and ends the process.
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
  ~CommunicatorWatch();  // waits for calls that are under way
  CommunicatorWatch(const CommunicatorWatch&) = delete;

  // Asked several times in a heartbeat. An empty one takes it away. Waits for a call of the one before it that
  // is under way. Throws run_error where the system refuses a thread.
  void count_transfers(Count count);
  // The last answer; does not wait.
  TransferCount counted() const;

  // Called once at the verdict, or before this returns where there is one already. An empty one takes it away:
  // then the one before it has been called, if there is a verdict, and no call is under
  // way. Throws as count_transfers().
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
