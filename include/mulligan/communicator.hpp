// C++ side of communicator.h: derive from Communicator, then MULLIGAN_EXPORT_COMMUNICATOR(Class, name).
// Contracts: communicator.h.
#pragma once

#include <mulligan/communicator.h>
#include <mulligan/plugin.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

using Collective = mlg_collective;

// Numbers of finished tickets, and of those that the backend's work has reached; by default all submitted ones.
struct Tickets {
  std::uint64_t completed = 0, begun = UINT64_MAX;
};

// The ranks, and small messages between them; members as in communicator.h. Valid while the communicator lives; any thread.
struct Group : mlg_group {
  explicit Group(const mlg_group& group) : mlg_group(group) {}

  // One rank puts `key` once.
  void put(const std::string& key, std::string_view value) const {
    check(mlg_group::put(self, key.c_str(), value.data(), value.size()));
  }
  // Waits until a rank has put it. Throws after `seconds`, and as soon as the run has failed on another rank.
  std::string get(const std::string& key, double seconds) const {
    std::string value(512, '\0');
    for (;;) {
      std::size_t bytes = value.size();
      check(mlg_group::get(self, key.c_str(), value.data(), &bytes, seconds));
      const bool complete = bytes <= value.size();
      value.resize(bytes);
      if (complete) return value;
    }
  }
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual void open(const Group& group, const mlg_queue& queue, double seconds) = 0;
  virtual void* prepare(std::span<const Collective> list) = 0;
  virtual std::uint64_t submit(void* prepared) = 0;
  virtual void join(std::uint64_t ticket) = 0;
  virtual Tickets poll() = 0;         // any thread
  virtual void abort() noexcept = 0;  // any thread
  virtual void release(void* prepared) noexcept = 0;
};

template <typename Class>
mlg_communicator_table make_communicator_table(const char* name) {
  static constexpr auto at = [](void* self) -> Communicator& { return *static_cast<Communicator*>(self); };
  auto table = new_table<Class, Communicator, mlg_communicator_table>(MLG_COMMUNICATOR, name);
  table.open = [](void* self, const mlg_group* group, const mlg_queue* queue, double seconds) -> mlg_error {
    return guarded([&] { at(self).open(Group(*group), *queue, seconds); });
  };
  table.prepare = [](void* self, const mlg_collective* list, std::uint32_t count,
                     void** prepared) -> mlg_error {
    return guarded([&] { *prepared = at(self).prepare(std::span(list, count)); });
  };
  table.submit = [](void* self, void* prepared, std::uint64_t* ticket) -> mlg_error {
    return guarded([&] { *ticket = at(self).submit(prepared); });
  };
  table.join = [](void* self, std::uint64_t ticket) -> mlg_error {
    return guarded([&] { at(self).join(ticket); });
  };
  table.poll = [](void* self, std::uint64_t* completed, std::uint64_t* begun) -> mlg_error {
    return guarded([&] {
      const Tickets tickets = at(self).poll();
      *completed = tickets.completed;
      *begun = tickets.begun;
    });
  };
  table.abort = [](void* self) { at(self).abort(); };
  table.release = [](void* self, void* prepared) { at(self).release(prepared); };
  return table;
}

}  // namespace mulligan::sdk

#pragma GCC visibility pop

#define MULLIGAN_EXPORT_COMMUNICATOR(Class, name) \
  MULLIGAN_EXPORT_PLUGIN(mulligan::sdk::make_communicator_table<Class>(#name))
