#include "plugins/communicators/gloo/exchange.h"

#include <cstring>

#include "plugins/communicators/gloo/sum.h"

namespace mulligan::gloo_ranks {
namespace {

void pack(const Message& message) {
  if (!message.packed) return;
  for (const Part& part : message.parts) std::memcpy(message.buffer + part.offset, part.memory, part.bytes);
}

void unpack(const Message& message) {
  if (!message.packed) return;
  for (const Part& part : message.parts) {
    if (part.memory) std::memcpy(part.memory, message.buffer + part.offset, part.bytes);
  }
}

class Exchange {
 public:
  Exchange(const Plan& plan, Mesh* mesh, int rank, int size)
      : plan_(plan), mesh_(mesh), rank_(rank), size_(size) {}

  void run() {
    if (mesh_) mesh_->reset();
    each_peer([&](int peer, std::size_t i) {
      for (const Message& message : plan_.incoming[i]) mesh_->receive(peer, message.address(), message.bytes);
      for (const Message& message : plan_.incoming_sums[i])
        mesh_->receive(peer, message.address(), message.bytes);
    });
    each_peer([&](int peer, std::size_t i) {
      for (const Message& message : plan_.outgoing[i]) {
        pack(message);
        mesh_->send(peer, message.address(), message.bytes);
      }
    });
    for (const Copy& copy : plan_.copies) std::memcpy(copy.to, copy.from, copy.bytes);
    for (const Sum& sum : plan_.additions) add(sum);
    each_peer([&](int peer, std::size_t i) {
      const auto &first = plan_.incoming[i], &then = plan_.incoming_sums[i];
      mesh_->wait_received(peer, first.size());
      for (const Message& message : first) unpack(message);
      mesh_->wait_received(peer, first.size() + then.size());
      for (const Message& message : then) unpack(message);
    });
    each_peer([&](int peer, std::size_t i) {
      mesh_->wait_sent(peer, plan_.outgoing[i].size() + plan_.sums.size());
    });
  }

 private:
  // The other ranks, from the next on, so that not all begin with the same one.
  template <typename Body>
  void each_peer(Body&& body) {
    for (int step = 1; step < size_; ++step) {
      const int peer = (rank_ + step) % size_;
      body(peer, static_cast<std::size_t>(peer));
    }
  }

  void add(const Sum& sum) {
    for (int peer = 0; peer < size_; ++peer) {
      if (peer != rank_) mesh_->wait_received(peer, sum.sources[static_cast<std::size_t>(peer)].messages);
    }
    sum_parts(sum.dtype, sum.parts, sum.to, sum.count);
    for (; sums_sent_ < sum.sums_ready; ++sums_sent_) {
      const Message& message = plan_.sums[sums_sent_];
      pack(message);
      each_peer([&](int peer, std::size_t) { mesh_->send(peer, message.address(), message.bytes); });
    }
  }

  const Plan& plan_;
  Mesh* mesh_;
  int rank_, size_;
  std::size_t sums_sent_ = 0;
};

}  // namespace

void exchange(const Plan& plan, Mesh* mesh, int rank, int size) {
  Exchange(plan, mesh, rank, size).run();
}

}  // namespace mulligan::gloo_ranks
