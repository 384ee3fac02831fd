// One end of the control channel: that of rank 0, to which all others are connected, or that of another rank. All calls are on the
// thread of the SocketLoop.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/ranks/control_messages.h"
#include "framework/ranks/control_options.h"
#include "framework/ranks/handshake.h"
#include "framework/ranks/socket_loop.h"
#include "framework/ranks/verdict.h"

namespace mulligan {

enum class FailureCause : std::uint8_t {
  own = 1,            // of this rank: an exception
  communication = 2,  // a transfer failed, maybe because another rank is gone
  stopped = 3,        // a signal: no fault
  server_lost = 4,    // this rank gave up rank 0: its own verdict, sent to a rank 0 that resumes later
};

class ControlEnd {
 public:
  struct Callbacks {
    // consult: on rank 0 the parts, before its answer; on the others the answer.
    std::function<void(std::uint64_t sequence, std::vector<std::string> parts)> call_done;
    std::function<void(std::uint64_t request, const std::string& value)> value_there;
    std::function<void(const Verdict&)> decided;  // once
    std::function<void()> all_done;               // every rank has said farewell
    std::function<void(const std::string&)> log;
    std::function<Heartbeat()> pulse;  // how far this rank is
  };

  virtual ~ControlEnd() = default;
  virtual void start() = 0;
  virtual void arrive(const Arrival& arrival) = 0;
  // Rank 0's answer to the consult() whose parts call_done has just given.
  virtual void answer(const CallResult& result) = 0;
  virtual void put(const Put& put) = 0;
  virtual void get(const Get& get) = 0;
  virtual void report(const FailureReport& report) = 0;
  virtual void say_farewell() = 0;
  // ControlChannel::own_address()
  virtual std::string own_address() const = 0;
  // Closes all connections, after what was sent.
  virtual void leave() = 0;
};

// Both throw like SocketLoop::listen. The loop is stopped before they are destroyed.
std::unique_ptr<ControlEnd> make_control_server(SocketLoop& loop, const LaunchEnvironment& environment,
                                                ControlOptions options, ControlEnd::Callbacks callbacks);
std::unique_ptr<ControlEnd> make_control_client(SocketLoop& loop, const LaunchEnvironment& environment,
                                                ControlOptions options, ControlEnd::Callbacks callbacks);

// Whether a host is this machine by its name alone: localhost, 127.x.x.x or ::1.
bool is_loopback_name(const std::string& host);

}  // namespace mulligan
