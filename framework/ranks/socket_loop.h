// SocketLoop: TCP connections and timers of one thread. Whatever is not said otherwise is called on that
// thread, and calls back there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/ranks/control_frames.h"

namespace mulligan {

// What to_frames() made, shared by all links that it goes out on.
using Frames = std::shared_ptr<const std::string>;

inline Frames shared_frames(std::string frames) {
  return std::make_shared<const std::string>(std::move(frames));
}

// A connection that carries messages. It closes itself on errors, then says why through on_closed, once.
class Link {
 public:
  std::function<void(const ControlMessage&)>
      on_message;  // an Error that it throws closes the link with that sentence
  std::function<void(const std::string& reason)> on_closed;

  virtual ~Link() = default;
  // Does not wait. Nothing happens on a closed link.
  virtual void send(Frames frames) = 0;
  void send(std::string frames) { send(shared_frames(std::move(frames))); }
  // From now on messages have many frames (FrameReader).
  virtual void allow_large_messages() = 0;
  // When what was sent is out. No callback comes after this.
  virtual void close() = 0;
  virtual const std::string& peer_address() const = 0;  // as numbers
  virtual const std::string& own_address() const = 0;   // this side's, likewise
  virtual bool peer_on_loopback() const = 0;
  // When the last byte came, on the clock of SocketLoop::now().
  virtual double last_heard() const = 0;
};

class SocketLoop {
 public:
  using OnLink = std::function<void(std::shared_ptr<Link>)>;
  // The link, or none and why not.
  using OnConnected = std::function<void(std::shared_ptr<Link>, const std::string& reason)>;

  // Starts the thread. `silent_seconds`: unacknowledged data breaks a
  // connection after that (TCP_USER_TIMEOUT).
  explicit SocketLoop(double silent_seconds);
  ~SocketLoop();  // stop(); every Link must be gone
  SocketLoop(const SocketLoop&) = delete;

  // Waits until what was sent is out, at most a second, and ends the thread: callbacks that have not come
  // will not. From another thread than the loop's.
  void stop();

  // Any thread.
  void post(std::function<void()> work);
  void after(double seconds, std::function<void()> work);
  static double now();  // monotonic seconds

  // Listens at the first free port of `ports`: its index. `address`: an address in numbers, the name of a
  // network interface, or empty for all. Any thread. Throws config_error where there is no such interface,
  // and when no port is free.
  std::size_t listen(const std::string& address, const std::vector<std::uint16_t>& ports, OnLink on_link);
  void connect(const std::string& host, std::uint16_t port, double seconds, OnConnected on_connected);

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace mulligan
