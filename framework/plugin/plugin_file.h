// PluginFile: what a library file says about itself before any of its code runs.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "framework/plugin/plugin.h"

namespace mulligan {

// The ABI marker mlg_abi_<major>_<kind>_<name> (abi.h), taken apart.
struct PluginMarker {
  std::string symbol;
  int abi_major = 0;
  PluginKind kind = PluginKind::backend;
  std::string name;
};
std::optional<PluginMarker> parse_marker(std::string_view symbol);

// One candidate file, read but not loaded.
struct PluginFile {
  std::filesystem::path path;
  std::optional<PluginMarker> marker;  // when exactly one was found
  std::string problem;                 // why it cannot be loaded ("is not a shared library"), or empty
};

// Reads the file's exported symbols. Never throws for a bad file: `problem` says what is wrong with it.
PluginFile inspect_plugin_file(const std::filesystem::path& path);

// For a plugin of this project that this build leaves out: that, and how to get it, without full stop; "" for others.
std::string why_no_plugin(std::string_view name);

// Names of the symbols that a shared library for this machine exports, read from its dynamic symbol table
// (which stays when a library is stripped). Throws std::runtime_error with a reason ("is not a shared
// library") that reads on from the file's name.
std::vector<std::string> exported_symbols(const std::filesystem::path& path);

}  // namespace mulligan
