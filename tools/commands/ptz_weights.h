// The record script's artifact (.ptz) among the weights that commands read and write.
#pragma once

#include <memory>
#include <string>

#include "launch/commands/weight_source.h"

namespace mulligan {

// The weights of a file named *.ptz, null for any other name. Such a file says neither its model nor its tokenizer:
// the configuration is that of --config, or config.toml next to the file. Throws data_error or config_error.
std::unique_ptr<WeightSource> open_ptz(const std::string& name, const RunOptions& options);

// `export --to ptz`: the codes of an artifact, or of a run directory's, as they are. Throws data_error where there
// are none.
void export_ptz(const std::string& path, const std::string& output);

}  // namespace mulligan
