// What a configuration that came with data may not say: which code to run and where to write.
//
// A configuration is data where nobody typed its name as a configuration: inside of a checkpoint or an
// artifact, and config.toml of a run directory, which may be anybody's. Its plugins are names, which the
// user's own search path resolves.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "framework/config/config_tree.h"

namespace mulligan {

// Whether `path` is the config.toml that a run left in its directory.
bool is_configuration_of_a_run(const std::string& path);

// Marks every value of `tree` that names a file or folder of code or of output with Origin::Kind::stored:
// `path` anywhere, the audit log, and in plugin tables keys named as folders and values written as paths.
// An override (merge) replaces value and mark. Throws config_error for `extends` and for a plugin's name that
// no plugin can have.
void mark_stored_paths(ConfigNode& tree, const std::string& name);

// Takes the mark from `ttt.audit` of a run's own configuration where it names a file FILE.jsonl: that lies in
// the run's directory, and test-time training refuses a name that another file has (require_audit_file).
void allow_audit_log(ConfigNode& tree);

// Takes away what is marked and can be done without: rows of [[backend.kernels]], folders of caches, the
// audit log. Returns a sentence for each. Libraries and other paths stay marked: read_plugin_table and
// resolve_plugin_keys refuse them when, and only when, their plugin is needed.
std::vector<std::string> drop_stored_paths(ConfigNode& tree);

// The file of a run directory that names the folder in which the run was started. Relative paths of its configuration are
// taken from there, so that commands on the run can be given in any folder.
inline constexpr const char* kStartFolderFile = "started_in";

// Writes the current folder there. Throws run_error.
void note_start_folder(const std::filesystem::path& run_directory);

// Makes paths of data, weights and run directories absolute where the configuration of a run names them (its
// config.toml, or one in a file next to that, such as an artifact) and the run was started in another folder
// than the current one. Returns a sentence for each such folder that does not exist any more: its paths stay
// as they are.
std::vector<std::string> take_from_start_folder(ConfigNode& tree);

}  // namespace mulligan
