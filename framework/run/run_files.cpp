#include "framework/run/run_files.h"

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/config/config_report.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/report/machine.h"
#include "framework/run/weights.h"

namespace mulligan {

void require_fresh_directory(const RunConfig& config, bool resumed) {
  const RunFiles files{config.run.directory};
  const auto exists = [](const std::filesystem::path& path) {
    std::error_code failed;
    const bool found = std::filesystem::exists(path, failed);
    if (failed) {
      throw config_error(
          "'{}' cannot be looked at: {}; choose another directory with --set run.directory=....",
          path.string(), failed.message());
    }
    return found;
  };
  if (exists(files.result())) {
    throw config_error(
        "the run directory '{}' holds a finished run; choose another with --set run.directory=..., or start "
        "anew there with --overwrite.",
        config.run.directory);
  }
  const std::vector<CheckpointEntry> checkpoints = list_checkpoints(config.checkpoint.directory);
  if (!checkpoints.empty()) {
    throw config_error(
        "'{}' holds checkpoints of a run up to step {}; continue it with --resume, choose another with --set "
        "run.directory=..., or start anew there with --overwrite.",
        config.checkpoint.directory, checkpoints.back().step);
  }
  for (const auto& path : {files.weights(), files.artifact(), files.quantize_result(), files.ttt_result()}) {
    if (resumed || !exists(path)) continue;
    throw config_error(
        "'{}' is of another run; choose another directory with --set run.directory=..., or start anew there "
        "with --overwrite.",
        path.string());
  }
}

std::vector<DirectoryLock> lock_run(const RunConfig& config, std::string_view command) {
  const std::filesystem::path run = std::filesystem::absolute(config.run.directory).lexically_normal();
  const auto checkpoints = std::filesystem::absolute(config.checkpoint.directory).lexically_normal();
  std::vector<DirectoryLock> locks;
  locks.emplace_back(config.run.directory, command);
  if (checkpoints != run) locks.emplace_back(config.checkpoint.directory, command);
  return locks;
}

std::string config_digest(const LoadedConfig& loaded) {
  return settings_digest(print_resolved(loaded));
}

std::map<std::string, std::string> weights_metadata(const LoadedConfig& loaded,
                                                    const std::string& weights_kind,
                                                    const DataIdentity& data) {
  return {{"format", "mulligan weights 1"}, {"run", loaded.config.run.name},
          {"weights", weights_kind},        {"config", print_resolved(loaded)},
          {"commit", build_commit()},       {data_identity_key, to_json_text(data)}};
}

}  // namespace mulligan
