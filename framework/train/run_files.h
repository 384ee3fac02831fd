// The run directory: which files a run leaves, and result.json.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "framework/checkpoint/loss_account.h"
#include "framework/config/run_config.h"
#include "framework/plugin/plugin.h"
#include "framework/report/run_directory.h"
#include "framework/train/run.h"
#include "framework/train/training_data.h"

namespace mulligan {

// How a run uses its directory.
enum class RunStart {
  fresh,      // refused where there is a finished run or a checkpoint
  overwrite,  // what an earlier run left goes, its checkpoints too
  resume,     // an earlier run's log and metrics go on
};
// Makes the run's directory and removes what an earlier run left under these names; with RunStart::resume
// nothing is removed but leftovers of killed writers. Throws config_error when a fresh run finds another, and
// run_error when the folder cannot be made.
RunFiles open_run_directory(const RunConfig& config, RunStart start);

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
