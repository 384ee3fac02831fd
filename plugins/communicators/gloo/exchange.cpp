#include "plugins/communicators/gloo/exchange_plan.h"

#include <mulligan/kernel.hpp>

#include <algorithm>
#include <cstring>

#include "plugins/communicators/gloo/mesh.h"

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

constexpr std::int64_t kBlock = 1024;  // elements: the sums of one stay in the first cache

template <typename Value, typename Total = Value>
void sum_values(std::span<const void* const> parts, void* to, std::int64_t count) {
  Total sums[kBlock];
  for (std::int64_t start = 0; start < count; start += kBlock) {
    const std::int64_t length = std::min(kBlock, count - start);
    const Value* first = static_cast<const Value*>(parts[0]) + start;
    std::copy(first, first + length, sums);
    for (const void* part : parts.subspan(1)) {
      const Value* values = static_cast<const Value*>(part) + start;
      for (std::int64_t i = 0; i < length; ++i) sums[i] += values[i];
    }
    Value* result = static_cast<Value*>(to) + start;
    for (std::int64_t i = 0; i < length; ++i) result[i] = Value(sums[i]);
  }
}

// to[i] = parts[0][i] + parts[1][i] + ... for `count` elements of `dtype` (f32, f64, bf16). f32 and f64 are added in their own precision,
// bf16 in f32 and rounded once, to nearest even. `to` may be one of the parts.
void sum_parts(std::int32_t dtype, std::span<const void* const> parts, void* to, std::int64_t count) {
  if (dtype == MLG_F32) return sum_values<float>(parts, to, count);
  if (dtype == MLG_F64) return sum_values<double>(parts, to, count);
  sum_values<sdk::bfloat16, float>(parts, to, count);
}

}  // namespace

void exchange(const Plan& plan, Mesh* mesh, int rank, int size) {
  // The other ranks, from the next on, so that not all begin with the same one.
  const auto each_peer = [&](const auto& body) {
    for (int step = 1; step < size; ++step) {
      const int peer = (rank + step) % size;
      body(peer, static_cast<std::size_t>(peer));
    }
  };
  if (mesh) mesh->reset();
  each_peer([&](int peer, std::size_t i) {
    for (const Message& message : plan.incoming[i]) mesh->receive(peer, message.address(), message.bytes);
    for (const Message& message : plan.incoming_sums[i])
      mesh->receive(peer, message.address(), message.bytes);
  });
  each_peer([&](int peer, std::size_t i) {
    for (const Message& message : plan.outgoing[i]) {
      pack(message);
      mesh->send(peer, message.address(), message.bytes);
    }
  });
  for (const Copy& copy : plan.copies) std::memcpy(copy.to, copy.from, copy.bytes);
  std::size_t sums_sent = 0;
  for (const Sum& sum : plan.additions) {
    each_peer([&](int peer, std::size_t i) { mesh->wait_received(peer, sum.sources[i].messages); });
    sum_parts(sum.dtype, sum.parts, sum.to, sum.count);
    for (; sums_sent < sum.sums_ready; ++sums_sent) {
      const Message& message = plan.sums[sums_sent];
      pack(message);
      each_peer([&](int peer, std::size_t) { mesh->send(peer, message.address(), message.bytes); });
    }
  }
  each_peer([&](int peer, std::size_t i) {
    const auto &first = plan.incoming[i], &then = plan.incoming_sums[i];
    mesh->wait_received(peer, first.size());
    for (const Message& message : first) unpack(message);
    mesh->wait_received(peer, first.size() + then.size());
    for (const Message& message : then) unpack(message);
  });
  each_peer(
      [&](int peer, std::size_t i) { mesh->wait_sent(peer, plan.outgoing[i].size() + plan.sums.size()); });
}

}  // namespace mulligan::gloo_ranks
