#include "plugins/communicators/gloo/exchange.h"

#include <mulligan/dtype.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <string>

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

namespace {

constexpr std::int64_t kBlock = 1024;  // elements: the sums of one stay in the first cache

float value_of(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t bf16_bits(float value) {
  const auto word = std::bit_cast<std::uint32_t>(value);
  const auto rounded = static_cast<std::uint16_t>((word + 0x7FFFu + ((word >> 16) & 1u)) >> 16);
  return value != value ? static_cast<std::uint16_t>((word >> 16) | 0x40u) : rounded;
}

template <typename Value>
void sum_values(std::span<const void* const> parts, void* to, std::int64_t count) {
  Value sums[kBlock];
  for (std::int64_t start = 0; start < count; start += kBlock) {
    const std::int64_t length = std::min(kBlock, count - start);
    const Value* first = static_cast<const Value*>(parts[0]) + start;
    std::copy(first, first + length, sums);
    for (const void* part : parts.subspan(1)) {
      const Value* values = static_cast<const Value*>(part) + start;
      for (std::int64_t i = 0; i < length; ++i) sums[i] += values[i];
    }
    std::copy(sums, sums + length, static_cast<Value*>(to) + start);
  }
}

void sum_bf16(std::span<const void* const> parts, void* to, std::int64_t count) {
  float sums[kBlock];
  for (std::int64_t start = 0; start < count; start += kBlock) {
    const std::int64_t length = std::min(kBlock, count - start);
    const auto* first = static_cast<const std::uint16_t*>(parts[0]) + start;
    for (std::int64_t i = 0; i < length; ++i) sums[i] = value_of(first[i]);
    for (const void* part : parts.subspan(1)) {
      const auto* values = static_cast<const std::uint16_t*>(part) + start;
      for (std::int64_t i = 0; i < length; ++i) sums[i] += value_of(values[i]);
    }
    auto* result = static_cast<std::uint16_t*>(to) + start;
    for (std::int64_t i = 0; i < length; ++i) result[i] = bf16_bits(sums[i]);
  }
}

}  // namespace

void sum_parts(std::int32_t dtype, std::span<const void* const> parts, void* to, std::int64_t count) {
  switch (dtype) {
    case MLG_F32:
      return sum_values<float>(parts, to, count);
    case MLG_F64:
      return sum_values<double>(parts, to, count);
    case MLG_BF16:
      return sum_bf16(parts, to, count);
    default:
      throw std::runtime_error(std::string("sums over ranks are of f32, f64 or bf16, not of ") +
                               sdk::dtype_name(dtype));
  }
}

}  // namespace mulligan::gloo_ranks
