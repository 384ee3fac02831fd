// The communicator of several ranks: collectives by a communicator plugin, host messages by the HostGroup.
#pragma once

#include <memory>
#include <string>

#include "framework/plugin/communicator_plugin.h"
#include "framework/ranks/communicator.h"
#include "framework/ranks/host_group.h"

namespace mulligan {

class ControlChannel;

struct CommunicatorOptions {
  // The beginning of its keys in the group: the same on all ranks, and different for each communicator of a run. A run with two
  // backends has one communicator for each.
  std::string name = "communicator";
  std::string interface_name;  // network interface, or an address, to listen at; empty: the plugin chooses
  double open_seconds = 300;   // time for all ranks to come
  // Is told of every call into the plugin's library, counts the transfers and aborts them at its verdict. The first time that a batch is
  // submitted, ranks compare what it moves, so that no library is given collectives that do not match. Null: none of this.
  ControlChannel* channel = nullptr;
};

// A transfer failed, mostly because of another rank.
class TransferFailure : public Error {
 public:
  explicit TransferFailure(const Error& error) : Error(error) {}
};

// Connects with the other ranks, which call it, too. `group`, `backend` and the channel must outlive the result. If the backend has no
// queue, transfers go through buffers of the host, and submit() and join() wait for them. Throws run_error with the plugin's sentence.
std::unique_ptr<Communicator> make_plugin_communicator(std::unique_ptr<CommunicatorPlugin> plugin,
                                                       HostGroup& group, Backend& backend,
                                                       const CommunicatorOptions& options = {});

}  // namespace mulligan
