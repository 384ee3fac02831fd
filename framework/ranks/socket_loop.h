// SocketLoop: TCP connections and timers of one thread. Unless stated otherwise, functions are called and call back on that
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "framework/core/steady_time.h"
#include "framework/ranks/control_messages.h"

namespace mulligan {

// The result of to_frame(), shared by all links that send it.
using Frame = std::shared_ptr<const std::string>;

inline Frame shared_frame(std::string frames) {
  return std::make_shared<const std::string>(std::move(frames));
}

// A connection that carries messages. On an error it closes itself and gives the reason through on_closed, once.
class Link {
 public:
  std::function<void(const ControlMessage&)>
      on_message;  // an Error that it throws closes the link with that sentence
  std::function<void(const std::string& reason)> on_closed;
  std::string peer_address = "an unknown address", own_address;  // numeric; the other side's and this side's
  bool peer_on_loopback = false;
  double last_heard = 0;                    // when the last byte came, on the clock of steady_seconds()
  std::size_t longest = largest_handshake;  // bytes of a payload that it takes

  virtual ~Link() = default;
  // Does not wait. Nothing happens on a closed link.
  virtual void send(Frame frames) = 0;
  void send(std::string frames) { send(shared_frame(std::move(frames))); }
  // Closes after the sent bytes are out. No callback comes after this.
  virtual void close() = 0;
};

// Throws run_error if the system refuses a thread.
std::thread start_thread(std::function<void()> work);

class SocketLoop {
 public:
  using OnLink = std::function<void(std::shared_ptr<Link>)>;

  // Starts the thread. `silent_seconds`: after that time, unacknowledged data breaks a connection (TCP_USER_TIMEOUT).
  explicit SocketLoop(double silent_seconds);
  ~SocketLoop();  // calls stop(); every Link must be gone
  SocketLoop(const SocketLoop&) = delete;

  // Waits at most a second until the sent bytes are out, and ends the thread. Pending callbacks are dropped. Not from the loop's
  // own thread.
  void stop();

  // Any thread.
  void post(std::function<void()> work);
  void after(double seconds, std::function<void()> work);

  // Listens at the first free port of `ports` and returns its index. `address`: a numeric address, the name of a network
  // interface, or empty for all. Any thread. Throws config_error if there is no such interface, or if no port is free.
  std::size_t listen(const std::string& address, const std::vector<std::uint16_t>& ports, OnLink on_link);
  // A link that connects. Before that it has no own_address. It waits for as long as the system does.
  std::shared_ptr<Link> connect(const std::string& host, std::uint16_t port);

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace mulligan
