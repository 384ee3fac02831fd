// One end of the control channel: that of rank 0, to which all others are connected, or that of another rank. All calls are on the
// thread of the SocketLoop, which is stopped before an end is destroyed.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "framework/ranks/control_messages.h"
#include "framework/ranks/control_options.h"
#include "framework/ranks/handshake.h"
#include "framework/ranks/socket_loop.h"

namespace mulligan {

class ControlEnd {
 public:
  struct Callbacks {
    // What this rank is told: CallResult (on rank 0 the bytes of all ranks, before its answer), Put, once a Verdict, and Farewell when
    // every rank has said it.
    std::function<void(const ControlMessage&)> take;
    std::function<Heartbeat()> pulse;  // how far this rank is
  };

  ControlEnd(SocketLoop& loop, const LaunchEnvironment& environment, ControlOptions options,
             Callbacks callbacks);
  virtual ~ControlEnd() = default;
  virtual void start() = 0;
  // A message of this rank: Arrival, Put, FailureReport or Farewell. Rank 0's CallResult is its answer to a call.
  virtual void tell(const ControlMessage& message) = 0;
  // ControlChannel::own_address()
  virtual std::string own_address() const = 0;
  // Closes all connections, after what was sent.
  virtual void leave() = 0;
  // At rank 0: a connection that has not yet proved that it is a rank's.
  virtual void greet(std::shared_ptr<Link> link) { link->close(); }

 protected:
  // Until all have met: logs who is missing, and ends the run when options.meet seconds are over.
  void await_meeting();
  virtual bool has_met() const = 0;
  virtual std::string missing() const = 0;  // "rank 0 waits for rank 2 of 4"
  virtual Verdict not_met() const = 0;      // when the time is over
  virtual void decide(const Verdict& verdict) = 0;

  // Tries the first ports of rank 0, all at once and over and over, until a process at one of them proves that it is rank 0.
  void try_ports(std::size_t count);
  void stop_trying();
  virtual void welcomed(std::shared_ptr<Link> link, const RankName& server) = 0;  // once
  virtual void turned_away(const std::string& sentence) = 0;  // by a rank 0 of this run; may come often

  SocketLoop& loop_;
  LaunchEnvironment environment_;
  ControlOptions options_;
  Callbacks callbacks_;
  RunIdentity run_;
  RankName own_;
  const double begun_ = steady_seconds();
  double last_tick_ = begun_;
  bool over_ = false;                             // the run: by a verdict, or by the farewell of all
  std::string last_reason_ = "nothing answered";  // why the last attempts did not succeed

 private:
  // One port, tried over and over.
  struct Attempt {
    std::uint16_t port = 0;
    double pause = 0.1;
    std::shared_ptr<Link> link;
    Nonce greeted_with{};
    std::optional<Hello> hello;
  };
  void connect(Attempt& attempt);
  void answer(Attempt& attempt, const ControlMessage& message);
  void try_again(Attempt& attempt, const std::string& reason);

  std::list<Attempt> attempts_;
  bool stopped_ = false;
};

// The end of rank 0: it brings the ranks together, passes their messages on, and decides when the run has failed. Throws as
// SocketLoop::listen.
std::unique_ptr<ControlEnd> make_control_server(SocketLoop& loop, const LaunchEnvironment& environment,
                                                ControlOptions options, ControlEnd::Callbacks callbacks);
// The end of every other rank.
std::unique_ptr<ControlEnd> make_control_client(SocketLoop& loop, const LaunchEnvironment& environment,
                                                ControlOptions options, ControlEnd::Callbacks callbacks);

// Whether a host is this machine by its name alone: localhost, 127.x.x.x or ::1.
bool is_loopback_name(const std::string& host);

}  // namespace mulligan
