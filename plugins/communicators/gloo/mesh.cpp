#include "plugins/communicators/gloo/mesh.h"

#include <gloo/transport/address.h>
#include <gloo/transport/tcp/device.h>
#include <net/if.h>

#include <limits>
#include <stdexcept>

namespace mulligan::gloo_ranks {
namespace {

constexpr std::uint64_t kMessages = 0;  // gloo's slots
constexpr std::uint64_t kNever = 1;     // of a message that never comes

std::shared_ptr<gloo::transport::Device> make_device(const sdk::Group& group) {
  const std::string name = group.interface_name;
  const bool local = name.empty() && group.local_size == group.size;
  gloo::transport::tcp::attr place;
  (if_nametoindex(name.c_str()) != 0 ? place.iface : place.hostname) = local ? "127.0.0.1" : name;
  try {
    return gloo::transport::tcp::CreateDevice(place);
  } catch (const std::exception& error) {
    throw std::runtime_error("gloo cannot listen at '" + place.iface + place.hostname + "': " + error.what() +
                             "; 'ip address' lists this machine's interfaces and addresses");
  }
}

// gloo's sentences begin with a place in its sources, "[/build/pair.cc:598] ".
std::string without_place(const std::string& text) {
  const std::size_t end = text.starts_with('[') ? text.find("] ") : std::string::npos;
  return end == std::string::npos ? text : text.substr(end + 2);
}

// Where a rank listens to each of the others, in their order.
std::string address_of(const sdk::Group& group, const std::string& where, int peer, double seconds) {
  try {
    return group.get(where + "/" + std::to_string(peer), seconds);
  } catch (const std::exception& error) {
    throw std::runtime_error("rank " + std::to_string(peer) + " did not come: " + error.what());
  }
}

std::size_t as_offset(void* memory) {
  return reinterpret_cast<std::size_t>(memory);
}

}  // namespace

Mesh::Mesh(const sdk::Group& group, std::chrono::milliseconds timeout)
    : rank_(group.rank), size_(group.size), timeout_(timeout), device_(make_device(group)) {
  context_ = device_->createContext(rank_, size_);
  context_->setTimeout(timeout);
  peers_.resize(static_cast<std::size_t>(size_));
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    context_->createPair(peer);
    peers_[static_cast<std::size_t>(peer)].buffer =
        context_->createUnboundBuffer(nullptr, std::numeric_limits<std::size_t>::max());
  }
}

void Mesh::connect(const sdk::Group& group, const std::string& where, double seconds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  const auto left = [&] {
    return std::chrono::duration<double>(deadline - std::chrono::steady_clock::now()).count();
  };
  std::string own;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    const std::vector<char> bytes = context_->getPair(peer)->address().bytes();
    own.append(bytes.begin(), bytes.end());
  }
  group.put(where + "/" + std::to_string(rank_), own);
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    const std::string all = address_of(group, where, peer, std::max(left(), 0.0));
    const std::size_t bytes = all.size() / static_cast<std::size_t>(size_ - 1);
    const std::size_t first = bytes * static_cast<std::size_t>(rank_ < peer ? rank_ : rank_ - 1);
    const auto start = all.begin() + static_cast<std::ptrdiff_t>(first);
    wait(peer, "connecting to", [&] {
      context_->getPair(peer)->connect({start, start + static_cast<std::ptrdiff_t>(bytes)});
      // gloo tells a lost connection to messages that wait for their turn, not to one that is half here: this
      // one always waits.
      peers_[static_cast<std::size_t>(peer)].buffer->recv(peer, kNever, 0, 0);
      return true;
    });
  }
}

template <typename Wait>
void Mesh::wait(int peer, const char* doing, Wait&& once) {
  const std::string rank = std::to_string(peer);
  bool done = false;
  try {
    done = !aborted_ && once();
  } catch (const std::exception& error) {
    const std::string text = without_place(error.what());
    if (text.starts_with("Timed out")) {
      throw std::runtime_error("rank " + rank + " did not answer for " +
                               std::to_string(timeout_.count() / 1000.0) +
                               " s (communicator.timeout) while " + doing + " it");
    }
    throw std::runtime_error("the connection to rank " + rank + " was lost while " + doing + " it: " + text);
  }
  if (!done || aborted_) throw std::runtime_error("the communicator was aborted");
}

void Mesh::send(int peer, void* memory, std::size_t bytes) {
  wait(peer, "sending to", [&] {
    peers_[static_cast<std::size_t>(peer)].buffer->send(peer, kMessages, as_offset(memory), bytes);
    return true;
  });
}

void Mesh::receive(int peer, void* memory, std::size_t bytes) {
  wait(peer, "receiving from", [&] {
    peers_[static_cast<std::size_t>(peer)].buffer->recv(peer, kMessages, as_offset(memory), bytes);
    return true;
  });
}

void Mesh::wait_received(int peer, std::size_t count) {
  Peer& entry = peers_[static_cast<std::size_t>(peer)];
  for (; entry.received < count; ++entry.received) {
    wait(peer, "receiving from", [&] { return entry.buffer->waitRecv(nullptr, timeout_); });
  }
}

void Mesh::wait_sent(int peer, std::size_t count) {
  Peer& entry = peers_[static_cast<std::size_t>(peer)];
  for (; entry.sent < count; ++entry.sent) {
    wait(peer, "sending to", [&] { return entry.buffer->waitSend(nullptr, timeout_); });
  }
}

void Mesh::reset() {
  for (Peer& peer : peers_) peer.received = peer.sent = 0;
}

void Mesh::abort() noexcept {
  aborted_ = true;
  for (Peer& peer : peers_) {
    if (!peer.buffer) continue;
    peer.buffer->abortWaitRecv();
    peer.buffer->abortWaitSend();
  }
  close();
}

void Mesh::close() noexcept {
  for (int peer = 0; peer < size_; ++peer) {
    if (peer != rank_) context_->getPair(peer)->close();
  }
}

}  // namespace mulligan::gloo_ranks
