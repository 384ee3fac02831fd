// PluginHost finds plugin libraries, checks them before and after loading, and keeps them loaded.
//
// Every failure is a config_error with its own sentence that names the file and the reason. Nothing of a refused library stays
// in use. Not thread-safe: plugins are loaded while a run is set up.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "framework/core/error.h"
#include "framework/plugin/plugin.h"
#include "framework/plugin/plugin_file.h"

namespace mulligan {

// One place to search for plugins: a folder (its files mulligan_*.so) or a library file.
struct PluginPlace {
  // its origin, for messages: "--plugin-path", "MULLIGAN_PLUGIN_PATH", "the installation"
  std::string origin;
  std::filesystem::path path;
};

// The places in order: `command_line` (values of --plugin-path; each may hold several, separated by ':'), the environment
// variable MULLIGAN_PLUGIN_PATH (likewise), and lib/mulligan/plugins of the running program's installation. Empty parts are
// ignored, so the current folder is searched only if it is named.
std::vector<PluginPlace> plugin_places(std::span<const std::string> command_line);

// lib/mulligan/plugins of the running program's installation.
std::filesystem::path program_plugin_folder();
// Whether a library is outside of that folder. Then it is the user's own, and its file counts as code.
bool is_own_plugin(const std::filesystem::path& library);

class PluginHost {
 public:
  explicit PluginHost(std::vector<PluginPlace> places) : places_(std::move(places)) {}

  // The plugin of that kind and name, loaded at the first call. With `path` (a library file) nothing is searched; `name` may
  // then be empty, otherwise it must be the library's. Without `path` all places are searched. Two different libraries for one
  // name are refused; equal copies do not count as different. If there is none, the message lists every place with its
  // contents.
  PluginHandle load(PluginKind kind, const std::string& name, const std::filesystem::path& path = {});

  // The library that load(kind, name) would load, with links resolved; empty: none is found. Loads nothing.
  std::filesystem::path locate(PluginKind kind, const std::string& name);

  // All plugins loaded so far, in order of loading. Their name, version, path and sha256 go into result.json and checkpoints.
  const std::vector<PluginHandle>& loaded() const { return loaded_; }

  // The contents of each place. No plugin's code runs.
  struct SearchedPlace {
    PluginPlace place;
    std::string problem;            // why the place was not searched ("does not exist"), or empty
    std::vector<PluginFile> files;  // sorted by file name
  };
  const std::vector<SearchedPlace>& searched_places();

 private:
  PluginFile find(PluginKind kind, const std::string& name);
  Error not_found(PluginKind kind, const std::string& name);
  PluginHandle open(const PluginFile& file);

  std::vector<PluginPlace> places_;
  std::vector<SearchedPlace> looked_into_;
  bool searched_ = false;
  std::vector<PluginHandle> loaded_;
};

}  // namespace mulligan
