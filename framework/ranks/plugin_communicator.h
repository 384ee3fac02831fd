// The communicator of a run of several ranks: collectives by a communicator plugin, host messages by the
// HostGroup.
#pragma once

#include <memory>
#include <string>

#include "framework/plugin/communicator_plugin.h"
#include "framework/ranks/communicator.h"

namespace mulligan {

struct CommunicatorOptions {
  // The start of its keys in the group: another one for each communicator of a run, the same on all ranks. A
  // run with two backends has one communicator for each.
  std::string name = "communicator";
  std::string interface_name;  // network interface, or an address, to listen at; empty: the plugin chooses
  double open_seconds = 300;   // within which all ranks must have come
};

// Meets the other ranks, which call it, too. `group` and `backend` outlive the result. Where the backend says
// no queue, transfers go through buffers of the host, and submit() and join() wait for them. Throws run_error
// with the plugin's sentence.
std::unique_ptr<Communicator> make_plugin_communicator(std::unique_ptr<CommunicatorPlugin> plugin,
                                                       HostGroup& group, Backend& backend,
                                                       const CommunicatorOptions& options = {});

}  // namespace mulligan
