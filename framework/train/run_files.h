// The run directory: which files a run leaves, and result.json.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "framework/checkpoint/loss_account.h"
#include "framework/config/run_config.h"
#include "framework/core/directory_lock.h"
#include "framework/plugin/plugin.h"
#include "framework/report/run_directory.h"
#include "framework/train/run.h"
#include "framework/train/training_data.h"

namespace mulligan {

// Throws config_error where the directory holds a result, checkpoints or, unless an unfinished run is `resumed`
// there, weights of another run.
void require_fresh_directory(const RunConfig& config, bool resumed);

// The locks of the directories that a run writes to: its own and that of its checkpoints, which another run may be
// told to use. Throws config_error when another process holds one, run_error when one cannot be made.
std::vector<DirectoryLock> lock_run(const RunConfig& config, std::string_view command);

// sha256 of all settings without their origins: equal for equal configurations.
std::string config_digest(const LoadedConfig& loaded);

// What result.json holds besides RunResult.
struct RunFacts {
  std::vector<PluginHandle> plugins;
  std::string device;                      // the backend's own description
  std::vector<std::string> broken_limits;  // of [ledger], with rules = "open"
  std::string weights_kind;                // "averaged" or "last"
  const LossAccount* loss = nullptr;       // of the whole run
  bool hf_compat = false;
  DataIdentity data;           // training and validation
  SharedText shared_text;      // documents on both sides
  std::string weights_sha256;  // of the tensors in weights.safetensors
};
void write_result(const RunFiles& files, const LoadedConfig& loaded, const RunResult& result,
                  const RunFacts& facts);

// Metadata of weights.safetensors: format, run, resolved configuration, commit, data.
std::map<std::string, std::string> weights_metadata(const LoadedConfig& loaded,
                                                    const std::string& weights_kind,
                                                    const DataIdentity& data);

}  // namespace mulligan
