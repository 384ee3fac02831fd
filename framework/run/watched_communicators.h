// The communicators of a run, as the control channel sees them: it watches their transfers and every call into
// their libraries, and a verdict aborts them.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "framework/core/error.h"
#include "framework/ranks/communicator.h"

namespace mulligan {

class ControlChannel;

// A transfer failed, mostly because of another rank.
class TransferFailure : public Error {
 public:
  explicit TransferFailure(const Error& error) : Error(error) {}
};

class WatchedCommunicators {
 public:
  // Both outlive the communicators.
  explicit WatchedCommunicators(ControlChannel& channel) : channel_(channel) {}

  // What `make` makes, watched from then on. What fails in it is a TransferFailure. The first time that a batch
  // is submitted, ranks compare what it moves, so that no library is given collectives that do not match.
  std::unique_ptr<Communicator> add(const std::function<std::unique_ptr<Communicator>()>& make);

 private:
  class Watched;
  friend class Watched;
  void watch();

  ControlChannel& channel_;
  std::vector<Watched*> communicators_;
};

}  // namespace mulligan
