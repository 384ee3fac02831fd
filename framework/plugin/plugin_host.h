// PluginHost: finds plugin libraries, checks them before and after loading, keeps them loaded.
//
// Every failure is a config_error with a sentence of its own that names the file and the reason; nothing of a
// refused library stays in use. Not thread-safe: plugins are loaded while a run is being set up.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "framework/core/error.h"
#include "framework/plugin/plugin.h"
#include "framework/plugin/plugin_file.h"

namespace mulligan {

// One place where plugins are looked for: a folder (its files mulligan_*.so) or a library file.
struct PluginPlace {
  // who named it, for sentences: "--plugin-path", "MULLIGAN_PLUGIN_PATH", "the installation"
  std::string origin;
  std::filesystem::path path;
};

// The places in order: `command_line` (values of --plugin-path; each may hold several separated by ':'), the
// environment variable MULLIGAN_PLUGIN_PATH (likewise), and lib/mulligan/plugins of the installation that the
// running program belongs to. Empty parts are ignored: the current folder is searched only when it is named.
std::vector<PluginPlace> plugin_places(std::span<const std::string> command_line);

// lib/mulligan/plugins of the installation that the running program belongs to.
std::filesystem::path program_plugin_folder();
// Whether a library stands outside of that folder. It is then the user's own, and its file counts as code.
bool is_own_plugin(const std::filesystem::path& library);

class PluginHost {
 public:
  explicit PluginHost(std::vector<PluginPlace> places) : places_(std::move(places)) {}

  // The plugin of that kind and name, loaded at the first call. With `path` (a library file) nothing is
  // searched; `name` may then be empty, otherwise it must be the library's. Without, all places are looked
  // through: two different libraries for one name are refused (equal copies are not different), and when
  // there is none, the sentence lists every place with what was found there.
  PluginHandle load(PluginKind kind, const std::string& name, const std::filesystem::path& path = {});

  // The library that load(kind, name) would load, links resolved, or empty: none is found. Loads nothing.
  std::filesystem::path locate(PluginKind kind, const std::string& name);

  // All loaded so far, in order of loading: name, version, path and sha256 go into
  // result.json and checkpoints.
  const std::vector<PluginHandle>& loaded() const { return loaded_; }

  // What each place holds, without running any plugin's code.
  struct SearchedPlace {
    PluginPlace place;
    std::string problem;            // why nothing was looked at ("does not exist"), or empty
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
