// Where a command that scores gets its weights and configuration: an artifact, a run directory or
// a weights file.
#pragma once

#include <filesystem>
#include <string>

#include "framework/run/loaded_model.h"
#include "framework/run/weight_origin.h"
#include "launch/commands/run_options.h"

namespace mulligan {

struct WeightSource {
  WeightOrigin origin;
  LoadedConfig loaded;
  WeightLoader load;
};

// The file of --config, else the config.toml in `folder`, where the weights `name` lie. Throws config_error
// where there is neither.
std::string configuration_of(const RunOptions& options, const std::filesystem::path& folder,
                             const std::string& name);

// A run directory brings both weights and configuration; next to a weights file lies the configuration of its
// run, unless --config names another; an artifact brings its own; other names
// are for ProgramParts::other_weights. Throws data_error or config_error.
WeightSource open_weights(const std::string& path, const RunOptions& options);

}  // namespace mulligan
