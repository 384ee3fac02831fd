// One end of the control channel: that of rank 0, to which all others are connected, or that of another rank. All calls are on the
// thread of the SocketLoop.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "framework/ranks/control_messages.h"
#include "framework/ranks/control_options.h"
#include "framework/ranks/handshake.h"
#include "framework/ranks/socket_loop.h"
#include "framework/ranks/verdict.h"

namespace mulligan {

class ControlEnd {
 public:
  struct Callbacks {
    // What this rank is told: CallResult (of consult on rank 0 the parts, before its answer), FoundValue, once a Verdict, and
    // Farewell when every rank has said it.
    std::function<void(const ControlMessage&)> take;
    std::function<Heartbeat()> pulse;  // how far this rank is
  };

  ControlEnd(SocketLoop& loop, const LaunchEnvironment& environment, ControlOptions options,
             Callbacks callbacks)
      : loop_(loop),
        environment_(environment),
        options_(std::move(options)),
        callbacks_(std::move(callbacks)),
        run_(identity_of(environment, options_.secret)),
        own_(own_name(environment.rank)) {}
  virtual ~ControlEnd() = default;
  virtual void start() = 0;
  // A message of this rank: Arrival, Put, Get, FailureReport or Farewell. Rank 0's CallResult is its answer to the consult()
  // whose parts it was told.
  virtual void tell(const ControlMessage& message) = 0;
  // ControlChannel::own_address()
  virtual std::string own_address() const = 0;
  // Closes all connections, after what was sent.
  virtual void leave() = 0;

 protected:
  SocketLoop& loop_;
  LaunchEnvironment environment_;
  ControlOptions options_;
  Callbacks callbacks_;
  RunIdentity run_;
  RankName own_;
  double begun_ = steady_seconds(), last_tick_ = begun_;
  bool decided_ = false, done_ = false;  // the run is over: by a verdict, or by the farewell of all
};

// The end of every rank but 0. The loop is stopped before an end is destroyed.
std::unique_ptr<ControlEnd> make_control_client(SocketLoop& loop, const LaunchEnvironment& environment,
                                                ControlOptions options, ControlEnd::Callbacks callbacks);

// Whether a host is this machine by its name alone: localhost, 127.x.x.x or ::1.
bool is_loopback_name(const std::string& host);

}  // namespace mulligan
