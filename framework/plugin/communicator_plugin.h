// CommunicatorPlugin: collectives between the ranks of a run, made by a plugin; contracts of
// the calls in <mulligan/communicator.h>.
#pragma once

#include <mulligan/communicator.h>

#include <memory>
#include <span>

#include "framework/plugin/plugin_instance.h"

namespace mulligan {

// If a function fails, it throws run_error with the plugin's own sentence. One thread at a time may call, except for
// poll() and abort().
class CommunicatorPlugin : public PluginInstance<mlg_communicator_table> {
 public:
  using PluginInstance::PluginInstance;

  // Connects with the other ranks. `group` lives as long as this object. Fails after `seconds`.
  void open(const mlg_group& group, const mlg_queue& queue, double seconds) {
    call(table().open, &group, &queue, seconds);
  }
  // Collectives that were made ready; released with the object.
  struct Release {
    void operator()(void* handle) const { communicator->table().release(communicator->instance(), handle); }
    CommunicatorPlugin* communicator = nullptr;
  };
  using Prepared = std::unique_ptr<void, Release>;
  Prepared prepare(std::span<const mlg_collective> list) {
    const auto count = static_cast<std::uint32_t>(list.size());
    return Prepared(result<void*>(table().prepare, list.data(), count), Release{this});
  }
  // Returns the ticket, which join() waits for: 1 for the first.
  std::uint64_t submit(const Prepared& prepared) {
    return result<std::uint64_t>(table().submit, prepared.get());
  }
  void join(std::uint64_t ticket) { call(table().join, ticket); }

  // Numbers of finished tickets, and of those that the backend's work has reached; UINT64_MAX: the plugin does not report it.
  struct Tickets {
    std::uint64_t completed = 0, begun = UINT64_MAX;
  };
  // Any thread. Throws if the communicator has failed.
  Tickets poll() const {
    Tickets tickets;
    check(table().poll(instance(), &tickets.completed, &tickets.begun));
    return tickets;
  }
  // Any thread: pending and later calls fail soon.
  void abort() { table().abort(instance()); }
};

}  // namespace mulligan
