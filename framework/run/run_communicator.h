// The communicator of a run, as its configuration and the number of ranks ask for it.
#pragma once

#include <memory>

#include "framework/config/run_config.h"
#include "framework/plugin/plugin_host.h"
#include "framework/ranks/communicator.h"
#include "framework/ranks/plugin_communicator.h"

namespace mulligan {

// Whether the configuration names one, which one rank then takes, too.
bool has_own_communicator(const LoadedConfig& loaded);

// Makes the communicator of `backend` for the ranks of `group`, which all call it; one rank needs no plugin,
// and has one where the configuration names it. A choice by default becomes part of `loaded`
// (config.communicator, its resolved keys), so that result and checkpoints name the library. Throws
// config_error where there is no such plugin or its keys are wrong, and as make_plugin_communicator.
std::unique_ptr<Communicator> make_run_communicator(LoadedConfig& loaded, PluginHost& host, HostGroup& group,
                                                    Backend& backend,
                                                    const CommunicatorOptions& options = {});

}  // namespace mulligan
