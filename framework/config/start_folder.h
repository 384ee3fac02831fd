// The folder that a run was started in. The relative paths of its configuration are taken from there, so that
// commands on the run can be given in any folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "framework/config/config_tree.h"

namespace mulligan {

// The file of a run directory that names the folder.
inline constexpr const char* kStartFolderFile = "started_in";

// Writes the current folder there. Throws run_error.
void note_start_folder(const std::filesystem::path& run_directory);

// Makes paths of data, weights and run directories absolute where the configuration of a run names them (its
// config.toml, or one in a file next to that, such as an artifact) and the run was started in another folder
// than the current one. Returns a sentence for each such folder that does not exist any more: its paths stay
// as they are.
std::vector<std::string> take_from_start_folder(ConfigNode& tree);

}  // namespace mulligan
