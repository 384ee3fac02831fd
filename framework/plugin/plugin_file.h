// PluginFile: what the exported symbols of a library file tell before any of its code runs.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "framework/plugin/plugin.h"

namespace mulligan {

// The parts of the ABI marker mlg_abi_<major>_<kind>_<name> (abi.h).
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
  std::optional<PluginMarker> marker;  // set if exactly one was found
  std::string problem;                 // why it cannot be loaded ("is not a shared library"), or empty
};

// Reads the file's exported symbols. Never throws for a bad file; `problem` tells what is wrong with it.
PluginFile inspect_plugin_file(const std::filesystem::path& path);

// If this build excludes a plugin of this project, tells that and how to get it, without full stop. "" for others.
std::string why_no_plugin(std::string_view name);

// Names of the symbols that a shared library for this machine exports. They come from its dynamic symbol table, which stripping
// keeps. Throws std::runtime_error with a reason ("is not a shared library") that continues a sentence which begins with the
// file's name.
std::vector<std::string> exported_symbols(const std::filesystem::path& path);

}  // namespace mulligan
