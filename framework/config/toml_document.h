// Reads a configuration: a TOML file, the files it extends, and --set overrides, as one ConfigNode tree.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "framework/config/config_tree.h"
#include "framework/config/value.h"

namespace mulligan {

// Reads `path`. A top-level `extends = "base.toml"` (relative to the file that says it, chains allowed; or
// "mulligan:NAME", a shipped configuration) is read first and the file laid over it (see merge); run.name,
// run.directory and checkpoint.directory of the base are not inherited. The result has no `extends` member;
// every node knows its file and line. Throws config_error, with file:line where there is one, for: an
// unreadable file, invalid TOML, a circle of extends, a value of a kind no key has (dates, nested or mixed
// lists), a quoted key containing a dot. The config.toml of a run directory, also as a base, is read like
// stored text.
ConfigNode read_toml(const std::string& path);

// The same for TOML text; `name` stands for the file in messages, and extends is relative to its folder.
ConfigNode parse_toml(std::string_view text, const std::string& name);

// Text that came with data, such as a configuration stored in a file of weights: like parse_toml, but
// nothing else is read, and paths of code and of output are marked (stored_paths.h). Throws
// config_error for `extends`.
ConfigNode parse_stored_toml(std::string_view text, const std::string& name);

// Merges settings into `tree`: first `overrides`, whose origin is --set, then `more`. The last value of a key counts. All
// of them are one table, so a plugin's name replaces the keys of the file, but no key that is set here. A value is read as
// TOML (3, 0.5, true, "x", [1, 2]); text that is not valid TOML counts as a string. The schema checks keys and types.
// Throws config_error for a setting without '=' or with an empty part in its key.
void apply_overrides(ConfigNode& tree, std::span<const std::string> overrides,
                     std::span<const SettingsFrom> more = {});

// A configuration that the program carries in itself: `extends = "mulligan:quickstart"` works wherever the file lies.
struct ShippedConfig {
  std::string_view name;  // "quickstart": configs/quickstart.toml
  std::string_view text;
};

// What `extends` begins with in place of a path.
inline constexpr std::string_view shipped_prefix = "mulligan:";

std::span<const ShippedConfig> shipped_configs();

}  // namespace mulligan
