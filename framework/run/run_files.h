// The run directory: what may stand there before a run, what becomes of it, its locks, what its files say of it.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/core/directory_lock.h"
#include "framework/data/data_identity.h"
#include "framework/report/run_directory.h"

namespace mulligan {

// Throws config_error where the directory holds a result, checkpoints or, unless an unfinished run is
// `resumed` there, weights of another run.
void require_fresh_directory(const RunConfig& config, bool resumed);

// The locks of the directories that a run writes to: its own and that of its checkpoints, which another run
// may be told to use. Throws config_error when another process holds one, run_error when one cannot be made.
std::vector<DirectoryLock> lock_run(const RunConfig& config, std::string_view command);

// sha256 of all settings without their origins: equal for equal configurations.
std::string config_digest(const LoadedConfig& loaded);

// Metadata of weights.safetensors: format, run, resolved configuration, commit, data.
std::map<std::string, std::string> weights_metadata(const LoadedConfig& loaded,
                                                    const std::string& weights_kind,
                                                    const DataIdentity& data);

// ReplacedRun: the run that another one in its directory replaces. It is set aside by renaming, and goes only when the new one has
// something to show.
//
// In the run directory and, where that lies elsewhere, in the directory of checkpoints, what was there lies in `.replaced`. The file
// `.replaced.whole` says that all of it does: then it goes back if the new run has saved nothing, else it is removed. Without that
// file what is found there goes back. So a process that is killed at any moment leaves no doubt.
class ReplacedRun {
 public:
  ReplacedRun(std::filesystem::path directory, std::filesystem::path checkpoints)
      : directory_(std::move(directory)), checkpoints_(std::move(checkpoints)) {}

  // Whether the directories hold what cannot be made again in a moment: weights, results or checkpoints.
  bool worth_keeping() const;
  // Throws config_error for a folder that is named like a checkpoint and has other files.
  void require_only_a_run() const;

  // Renames all that a run leaves. Throws run_error when that cannot be done, after putting it back.
  void set_aside() const;
  // Removes what was set aside.
  void forget() const;
  // Under the lock, at the start of a command and after a failed one: keeps the run that has saved something. If the earlier one
  // goes back, log and metrics of the failed start stay as log_failed.txt and metrics_failed.jsonl. Returns what to report, or "".
  std::string recover() const;

 private:
  std::vector<std::filesystem::path> places() const;  // the two directories, or the one
  std::vector<std::filesystem::path> entries_of(const std::filesystem::path& place) const;
  void remove_new_run() const;
  void move_back() const;

  std::filesystem::path directory_, checkpoints_;
};

// Removes all that a run which did not come far leaves: configuration, log, metrics, ledger, report.
void remove_unfinished_run(const std::filesystem::path& directory);
// Removes the temporary files that killed processes left of a run's files and its trials'. Those of a process
// that lives stay. To be called where nothing is confined yet: there nothing is known of other processes.
void remove_temporary_leftovers(const std::filesystem::path& directory);

}  // namespace mulligan
