// Weights out of a file of task vectors: FILE@TASK in place of a weights file.
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

// What a user means by FILE@TASK, or by FILE alone where it holds one task; nothing where `name` is not a file of
// task vectors. A file whose own name has an @ is taken as it is.
std::optional<PackedName> packed_name(const std::string& name);

// The device unpacks the weights (task_vectors::load_task). The base is looked for where it lay when the file
// was packed, relative to it. The configuration is that of --config, or config.toml next to the file. Throws
// data_error or config_error.
WeightSource from_task_vectors(const PackedName& name, const RunOptions& options);

}  // namespace mulligan
