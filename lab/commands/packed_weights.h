// Weights from a file of task vectors: FILE@TASK in place of a weights file.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "launch/commands/weight_source.h"

namespace mulligan {

struct PackedName {
  std::filesystem::path file;
  std::string task;  // "" where none was named
};

// Resolves FILE@TASK, or FILE alone if it holds one task. Nothing if `name` is not a file of task vectors. If a file's own name
// has an @, that file is taken.
std::optional<PackedName> packed_name(const std::string& name);

// Unpacks the weights (task_vectors::load_task). The base is searched at its path at the time of packing, relative
// to the file. The configuration is that of --config, or config.toml next to the file. Throws data_error or config_error.
WeightSource from_task_vectors(const PackedName& name, const RunOptions& options);

}  // namespace mulligan
