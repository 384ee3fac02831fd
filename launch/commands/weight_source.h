// The source of the weights and the configuration for a command that scores: an artifact, a run directory or a weights file.
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

// The file of --config, else the config.toml in `folder`, the folder of the weights `name`. Throws config_error if there is
// neither.
std::string configuration_of(const RunOptions& options, const std::filesystem::path& folder,
                             const std::string& name);

// A run directory and an artifact have both weights and configuration. For a weights file, --config names the configuration,
// else the one next to it. Throws data_error or config_error.
WeightSource open_weights(const std::string& path, const RunOptions& options);

}  // namespace mulligan
