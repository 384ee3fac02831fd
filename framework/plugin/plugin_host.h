// PluginHost finds plugin libraries by the names of their files, loads them and checks their tables.
//
// Every failure is a config_error that names the file and the reason. Not thread-safe: plugins are loaded while a run is set up.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/error.h"
#include "framework/plugin/plugin.h"

namespace mulligan {

// One place to search for plugins: a folder of files mulligan_NAME.so, or one such file.
struct PluginPlace {
  // its origin, for messages: "--plugin-path", "MULLIGAN_PLUGIN_PATH", "the installation"
  std::string origin;
  std::filesystem::path path;
  // Filled by PluginHost::search(): why the place was not searched ("does not exist"), or empty; its files, by name.
  std::string problem = {};
  std::vector<std::filesystem::path> files = {};
};

// The places in order: `command_line` (values of --plugin-path; each may hold several, separated by ':'), the environment
// variable MULLIGAN_PLUGIN_PATH (likewise), and lib/mulligan/plugins of the running program's installation. Empty parts are
// ignored, so the current folder is searched only if it is named.
std::vector<PluginPlace> plugin_places(std::span<const std::string> command_line);

// lib/mulligan/plugins of the running program's installation.
std::filesystem::path program_plugin_folder();
// Whether a library is outside of that folder. Then it is the user's own, and its file counts as code.
bool is_own_plugin(const std::filesystem::path& library);

// NAME of a file mulligan_NAME.so; "" for other names.
std::string plugin_name_of(const std::filesystem::path& file);

class PluginHost {
 public:
  explicit PluginHost(std::vector<PluginPlace> places) : places_(std::move(places)) {}

  // The plugin of that kind and name, loaded at the first call. With `path` (a library file) nothing is searched; `name` may
  // then be empty, otherwise it must be the library's. Without `path` all places are searched for mulligan_NAME.so. Two
  // different files of that name are refused; equal copies do not count as different.
  PluginHandle load(mlg_kind kind, const std::string& name, const std::filesystem::path& path = {});
  // The plugin of a library file, of whatever kind.
  PluginHandle load_file(const std::filesystem::path& path);

  // The library that load(kind, name) would load, with links resolved; empty: none is found. Loads nothing.
  std::filesystem::path locate(mlg_kind kind, const std::string& name) const;
  // The files of that name in all places, in order. If there is none, throws config_error with the nearest name; `what` is
  // its kind in the message ("loss plugin").
  std::vector<std::filesystem::path> find(const std::string& name, std::string_view what = "plugin") const;

  // All plugins loaded so far, in order of loading. Their name, path and sha256 go into result.json and checkpoints.
  const std::vector<PluginHandle>& loaded() const { return loaded_; }

  // All places with their files.
  std::vector<PluginPlace> search() const;

 private:
  std::filesystem::path find_one(mlg_kind kind, const std::string& name) const;

  std::vector<PluginPlace> places_;
  std::vector<PluginHandle> loaded_;
};

}  // namespace mulligan
