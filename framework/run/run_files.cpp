#include "framework/run/run_files.h"

#include <algorithm>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/config/config_report.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/temporary_path.h"
#include "framework/report/machine.h"
#include "framework/run/weights.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

constexpr const char* replaced = ".replaced";
constexpr const char* whole = ".replaced.whole";  // in the run directory

// As exists(), but also true for a link that leads nowhere. Throws run_error where that cannot be determined.
bool lies_there(const fs::path& path) {
  std::error_code failed;
  const fs::file_status status = fs::symlink_status(path, failed);
  if (status.type() == fs::file_type::not_found) return false;
  if (!failed) return true;
  throw run_error("'{}' cannot be looked at: {}; check the permissions of its folder.", path.string(),
                  failed.message());
}

void move(const fs::path& from, const fs::path& to) {
  std::error_code failed;
  fs::rename(from, to, failed);
  if (failed) {
    throw run_error("'{}' cannot be renamed to '{}': {}; check the permissions of the run directory.",
                    from.string(), to.string(), failed.message());
  }
}

std::vector<fs::path> list(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored))
    paths.push_back(entry.path());
  return paths;
}

}  // namespace

void require_fresh_directory(const RunConfig& config, bool resumed) {
  const RunFiles files{config.run.directory};
  if (lies_there(files.result())) {
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
    if (resumed || !lies_there(path)) continue;
    throw config_error(
        "'{}' is of another run; choose another directory with --set run.directory=..., or start anew there "
        "with --overwrite.",
        path.string());
  }
}

std::vector<DirectoryLock> lock_run(const RunConfig& config, std::string_view command) {
  const fs::path run = fs::absolute(config.run.directory).lexically_normal();
  const auto checkpoints = fs::absolute(config.checkpoint.directory).lexically_normal();
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

std::vector<fs::path> ReplacedRun::places() const {
  std::error_code failed;
  const bool one = fs::equivalent(directory_, checkpoints_, failed) && !failed;
  if (one || !fs::is_directory(checkpoints_, failed)) return {directory_};
  return {directory_, checkpoints_};
}

std::vector<fs::path> ReplacedRun::entries_of(const fs::path& place) const {
  std::vector<fs::path> found;
  if (place == directory_) {
    for (const fs::path& path : RunFiles{place}.all()) {
      if (lies_there(path)) found.push_back(path);
    }
  }
  if (place == places().back()) {
    for (const CheckpointEntry& entry : list_checkpoints(checkpoints_)) found.push_back(entry.path);
  }
  return found;
}

bool ReplacedRun::worth_keeping() const {
  const RunFiles files{directory_};
  const auto precious = {files.result(),          files.weights(),     files.artifact(),
                         files.quantize_result(), files.evaluations(), files.ttt_result()};
  return std::ranges::any_of(precious, lies_there) || !list_checkpoints(checkpoints_).empty();
}

void ReplacedRun::require_only_a_run() const {
  for (const fs::path& path : RunFiles{directory_}.all()) {
    std::error_code ignored;
    const bool is_folder = fs::is_directory(fs::symlink_status(path, ignored));
    const bool of_ranks =
        path == RunFiles{directory_}.ranks() &&
        std::ranges::all_of(list(path), [](const fs::path& log) { return log.extension() == ".log"; });
    const bool of_events = path == RunFiles{directory_}.tensorboard() &&
                           std::ranges::all_of(list(path), [](const fs::path& file) {
                             return file.filename().string().starts_with("events.out.tfevents.");
                           });
    if (is_folder && path != RunFiles{directory_}.trials() && !of_ranks && !of_events) {
      throw config_error(
          "'{}' is a folder in the place of a run's file; move it away, or choose another directory with "
          "--set run.directory=....",
          path.string());
    }
  }
  for (const CheckpointEntry& entry : list_checkpoints(checkpoints_)) {
    const fs::path foreign = foreign_file_of_checkpoint(entry.path);
    if (foreign.empty()) continue;
    throw config_error(
        "'{}' is named like a checkpoint but holds '{}', which is none of a checkpoint's files; move it "
        "away, or choose another directory with --set run.directory=....",
        entry.path.string(), foreign.filename().string());
  }
}

void ReplacedRun::set_aside() const {
  try {
    for (const fs::path& place : places()) {
      std::error_code failed;
      fs::create_directories(place / replaced, failed);
      if (failed) {
        throw run_error("the folder '{}' cannot be made: {}.", (place / replaced).string(), failed.message());
      }
      for (const fs::path& path : entries_of(place)) move(path, place / replaced / path.filename());
      sync_folder(place / replaced);  // a file system that cannot is as safe as it can be
    }
    write_file_atomically(directory_ / whole, "");
    sync_folder(directory_);
  } catch (const Error&) {
    move_back();
    throw;
  }
}

void ReplacedRun::move_back() const {
  std::error_code ignored;
  fs::remove(directory_ / whole, ignored);
  for (const fs::path& place : places()) {
    for (const fs::path& path : list(place / replaced)) {
      // Renaming does not replace a folder that is not empty.
      if (fs::is_directory(path, ignored)) fs::remove_all(place / path.filename(), ignored);
      move(path, place / path.filename());
    }
    fs::remove(place / replaced, ignored);
  }
}

void ReplacedRun::remove_new_run() const {
  const RunFiles files{directory_};
  std::error_code ignored;
  if (lies_there(directory_ / replaced / files.log().filename())) {
    fs::rename(files.log(), files.failed_log(), ignored);
    fs::rename(files.metrics(), files.failed_metrics(), ignored);
  }
  for (const fs::path& place : places()) {
    for (const fs::path& path : entries_of(place)) {
      if (path != files.failed_log() && path != files.failed_metrics()) fs::remove_all(path, ignored);
    }
  }
}

void ReplacedRun::forget() const {
  std::error_code ignored;
  for (const fs::path& place : places()) fs::remove_all(place / replaced, ignored);
  fs::remove(directory_ / whole, ignored);
}

std::string ReplacedRun::recover() const {
  const bool is_whole = lies_there(directory_ / whole);
  const auto has_some = [](const fs::path& place) { return lies_there(place / replaced); };
  if (std::ranges::none_of(places(), has_some)) {
    std::error_code ignored;
    fs::remove(directory_ / whole, ignored);  // the process was killed in forget()
    return {};
  }
  if (is_whole && worth_keeping()) {
    forget();
    return {};
  }
  // Otherwise the process was killed in set_aside() or move_back(): the new run has written nothing, or is removed.
  if (is_whole) remove_new_run();
  move_back();
  return fmt::format(
      "the run in '{}' is back: the one that was to replace it ended before it had saved anything",
      directory_.string());
}

void remove_unfinished_run(const fs::path& directory) {
  for (const fs::path& path : RunFiles{directory}.all()) {
    std::error_code failed;
    fs::remove_all(path, failed);
    if (failed) throw run_error("the file '{}' cannot be replaced: {}.", path.string(), failed.message());
  }
}

void remove_temporary_leftovers(const fs::path& directory) {
  std::error_code ignored;
  const auto remove_in = [&](const fs::path& folder, const auto& ours) {
    for (const fs::path& path : list(folder.empty() ? fs::path(".") : folder)) {
      const std::string name = name_of_temporary(path.filename().string());
      if (!name.empty() && ours(name) && is_left_behind(path)) fs::remove(path, ignored);
    }
  };
  const std::vector<fs::path> files = RunFiles{directory}.all();
  const auto of_run = [&](const std::string& name) {
    return std::ranges::any_of(files, [&](const fs::path& file) { return file.filename() == name; });
  };
  const fs::path trials = RunFiles{directory}.trials();
  for (const fs::path& path : list(trials)) {
    if (fs::is_directory(fs::symlink_status(path, ignored))) remove_in(path, of_run);
  }
  // NAME.json of each trial, next to its folder.
  remove_in(trials, [](const std::string& name) { return name.ends_with(".json"); });
  remove_in(directory, of_run);
}

}  // namespace mulligan
