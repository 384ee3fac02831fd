// RunRanks: the ranks of a run: how they met, what they say to each other, and how what happens to one ends
// it for all.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/plugin/plugin_host.h"
#include "framework/ranks/launch_environment.h"
#include "framework/ranks/plugin_communicator.h"

namespace mulligan {

class ControlChannel;
struct DataIdentity;

// Makes the communicator of `backend` for the ranks of `group`, which all call it; one rank needs no plugin,
// and has one where the configuration names it. A choice by default becomes part of `loaded`
// (config.communicator, its resolved keys), so that result and checkpoints name the library. Throws
// config_error where there is no such plugin or its keys are wrong, and as make_plugin_communicator.
std::unique_ptr<Communicator> make_run_communicator(LoadedConfig& loaded, PluginHost& host, HostGroup& group,
                                                    Backend& backend,
                                                    const CommunicatorOptions& options = {});

class RunRanks {
 public:
  // A run of these, which have met; without any, of this process alone.
  explicit RunRanks(std::unique_ptr<HostGroup> group = make_single_group());
  // As the environment says, or `launcher` (find_launch). Meets the others, which takes until the last has
  // come; lines about that go to `log`. Throws Error.
  RunRanks(const std::string& launcher, const std::function<void(const std::string&)>& log);
  ~RunRanks();
  RunRanks(const RunRanks&) = delete;

  HostGroup& group();
  // Whether this rank has the run directory, and says what is to be said.
  bool first() { return group().rank() == 0; }
  bool alone() { return group().world_size() == 1; }
  const LaunchEnvironment& environment() const { return environment_; }
  // Collective: rank 0 knows how often the run was restarted, as its launcher may not.
  void note_restarts(std::int64_t restarts);
  // Machines, as what started the ranks counts them; known once require_same_run() has been called.
  int nodes() const { return nodes_; }

  // The communicator of a run on `backend`: made by all ranks in the same order. This object must outlive it.
  std::unique_ptr<Communicator> communicator(LoadedConfig& loaded, PluginHost& host, Backend& backend);
  // Before anything expensive: throws on every rank the same config_error where they are not of one build,
  // configuration or set of plugins; and where they do not read the same data: training and validation shards,
  // tokenizer, the table that counts bytes.
  void require_same_run(const LoadedConfig& loaded, PluginHost& host);
  void require_same_data(const DataIdentity& data);
  // The same of other facts, by name.
  void require_same(const std::vector<std::pair<std::string, std::string>>& facts);
  // For the others' watch over this rank.
  void note_step();
  // In the midst of long work: throws the verdict where the run has ended elsewhere.
  void require_running();
  // While the result lives, the others wait for this rank as patiently as before the first step.
  [[nodiscard]] std::shared_ptr<const void> patience();
  // All ranks have agreed to stop and have saved what they have: no single rank caused the interruption.
  void note_agreed_stop() { agreed_stop_ = true; }

  // Does `work`. When it is done, or was interrupted, all ranks end together; a failure is told to the
  // others, and what is thrown then is what this rank is to end with: its own error, or the verdict that
  // names the rank that failed.
  void run(const std::function<void()>& work);

 private:
  std::string listening_address();

  LaunchEnvironment environment_;
  std::unique_ptr<HostGroup> given_;
  std::unique_ptr<ControlChannel> channel_;
  // Of a process alone whose communicator is a library that may not return: it watches over that.
  std::unique_ptr<ControlChannel> alone_;
  int communicators_ = 0;
  int nodes_ = 1;
  bool agreed_stop_ = false;
};

}  // namespace mulligan
