// The connections of one rank to all others, by gloo's transport, and messages over them.
//
// Every pair of ranks has one connection, on which messages arrive in the order of sending. The listener accepts every
// client that reaches its port: the network is trusted.
#pragma once

#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <mulligan/communicator.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace mulligan::gloo_ranks {

class Mesh {
 public:
  // Listens at the group's interface, address or name of this machine. If the group names none, at the loopback's address for ranks of one
  // machine, else at that of the machine's name. `timeout`: of each connection. Throws std::runtime_error.
  Mesh(const sdk::Group& group, std::chrono::milliseconds timeout);

  // Meets the other ranks within `seconds`. `where` is the start of the keys that it puts.
  void connect(const sdk::Group& group, const std::string& where, double seconds);
  // How long a message may take.
  void set_timeout(std::chrono::milliseconds timeout) { timeout_ = timeout; }

  // Starts one message; the memory is used until the wait. gloo allocates a few small objects for each.
  void send(int peer, void* memory, std::size_t bytes);
  void receive(int peer, void* memory, std::size_t bytes);
  // Waits until `count` messages, of all since the last reset(), have arrived from `peer`, or been sent to
  // it. Throws std::runtime_error naming the rank where its connection is lost, nothing moves for the
  // timeout, or abort() was called.
  void wait_received(int peer, std::size_t count);
  void wait_sent(int peer, std::size_t count);
  // All messages have been waited for: counting starts anew.
  void reset();

  void abort() noexcept;  // any thread: waits end, as after close()
  void close() noexcept;  // no memory is touched any more; the peers see lost connections

 private:
  struct Peer {
    // Takes the messages of one rank, wherever they lie: its memory is all there is.
    std::unique_ptr<gloo::transport::UnboundBuffer> buffer;
    std::size_t received = 0, sent = 0;
  };
  template <typename Wait>
  void wait(int peer, const char* doing, Wait&& once);

  int rank_, size_;
  std::chrono::milliseconds timeout_;
  std::atomic<bool> aborted_ = false;
  std::shared_ptr<gloo::transport::Device> device_;
  std::shared_ptr<gloo::transport::Context> context_;
  std::vector<Peer> peers_;  // the own one empty
};

}  // namespace mulligan::gloo_ranks
