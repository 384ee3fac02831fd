// The run directory: what may stand there before a run, its locks, what its files say of it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/core/directory_lock.h"
#include "framework/data/data_identity.h"
#include "framework/report/run_directory.h"

namespace mulligan {

// Throws config_error where the directory holds a result, checkpoints or, unless an unfinished run is
// `resumed` there, weights of another run.
void require_fresh_directory(const RunConfig& config, bool resumed);

// The locks of the directories that a run writes to: its own and that of its checkpoints, which another run
// may be told to use. Throws config_error when another process holds one, run_error when one cannot be made.
std::vector<DirectoryLock> lock_run(const RunConfig& config, std::string_view command);

// sha256 of all settings without their origins: equal for equal configurations.
std::string config_digest(const LoadedConfig& loaded);

// Metadata of weights.safetensors: format, run, resolved configuration, commit, data.
std::map<std::string, std::string> weights_metadata(const LoadedConfig& loaded,
                                                    const std::string& weights_kind,
                                                    const DataIdentity& data);

}  // namespace mulligan
