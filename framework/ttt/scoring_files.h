// What a run of test-time training may reach of the machine while plugins are at work.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "framework/config/run_config.h"
#include "framework/core/sandbox.h"
#include "framework/plugin/plugin_host.h"

namespace mulligan {

// What a configuration's backend and plugins need to read: the system's folders (without the folders of the
// validation data, should these lie there), the program's libraries and the plugins'. Where the backend is not the processor's, its driver and compilers open files of their own:
// then everything but the validation data.
ReachableFiles files_for_scoring(const LoadedConfig& loaded, PluginHost& host);
// Besides, a run's own: the folder of its results ("": there is none) and `weights`, a file or a run directory.
void add_files_of_run(ReachableFiles& files, const std::filesystem::path& directory,
                      const std::filesystem::path& weights);

// What of `files` leads to the validation data, in words that can stand in Confinement::missing; empty: nothing.
std::string reachable_validation(const LoadedConfig& loaded, const ReachableFiles& files);

// confine_calls() where the backend is the processor's; a GPU's driver and compilers may need what it takes.
Confinement confine_calls_of(const LoadedConfig& loaded, bool sockets, std::span<const int> untouchable = {});

}  // namespace mulligan
