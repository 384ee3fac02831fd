// What a scoring refuses and what it reads: the validation tokens, and the files of the machine that it may reach.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "framework/config/run_config.h"
#include "framework/core/sandbox.h"
#include "framework/eval/evaluate.h"
#include "framework/plugin/plugin_host.h"

namespace mulligan {

// [ttt] lanes, for so many ranks. Throws config_error where there are fewer lanes than ranks.
std::int64_t lanes_for(const LoadedConfig& loaded, int world_size);
// Throws config_error where a configuration cannot be scored, or not under its rules; `same_process`: the check of
// scores has no process of its own (TttAudit).
void require_scorable(const LoadedConfig& loaded, bool same_process);

// The validation tokens that test-time training scores.

// All of them; whole rows where the configuration leaves the remainder unscored. Throws data_error when a
// file is bad or nothing is left.
ValidationSet scored_validation(const RunConfig& config);

// Counts the bytes of all tokens that test-time training will score by the byte table and by decoding. Throws
// data_error when the two differ: bits per byte could not be given, and hours of scoring would be lost.
void require_equal_bytes(const ValidationSet& validation, const TttConfig& config);

// What a run of test-time training may reach of the machine while plugins are at work.

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
