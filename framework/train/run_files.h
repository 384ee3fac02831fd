// The run directory: which files a run leaves, and result.json.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/plugin/plugin.h"
#include "framework/train/run.h"

namespace mulligan {

struct RunFiles {
  std::filesystem::path directory;
  std::filesystem::path config() const { return directory / "config.toml"; }  // resolved
  std::filesystem::path log() const { return directory / "log.txt"; }
  std::filesystem::path metrics() const { return directory / "metrics.jsonl"; }
  std::filesystem::path weights() const { return directory / "weights.safetensors"; }
  std::filesystem::path result() const { return directory / "result.json"; }
};

// Makes the run's directory and removes what an earlier run left under these names. Throws config_error when
// it holds a finished run and `overwrite` is not set, and run_error when the folder cannot be made.
RunFiles open_run_directory(const RunSection& run, bool overwrite);

// sha256 of all settings without their origins: equal for equal configurations.
std::string config_digest(const LoadedConfig& loaded);

// What result.json holds besides RunResult.
struct RunFacts {
  std::vector<PluginHandle> plugins;
  std::string device;                      // the backend's own description
  std::vector<std::string> broken_limits;  // of [ledger], with rules = "open"
  std::string weights_kind;                // "averaged" or "last"
};
void write_result(const RunFiles& files, const LoadedConfig& loaded, const RunResult& result,
                  const RunFacts& facts);

// Metadata of weights.safetensors: format, run, resolved configuration, commit.
std::map<std::string, std::string> weights_metadata(const LoadedConfig& loaded,
                                                    const std::string& weights_kind);

}  // namespace mulligan
