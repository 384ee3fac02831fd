#include "framework/checkpoint/checkpoint_folder.h"

#include <fcntl.h>
#include <stdio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/temporary_path.h"

namespace mulligan {

namespace fs = std::filesystem;

namespace {

constexpr const char* manifest_file = "manifest.json";
constexpr const char* manifest_sum_file = "manifest.json.sha256";
constexpr std::string_view name_prefix = "step_";
constexpr std::string_view temporary_prefix = ".writing_";
constexpr std::string_view removed_prefix = ".removing_";

// Step of a folder's name, or nothing for other names.
std::optional<std::int64_t> step_of(const std::string& name) {
  if (!name.starts_with(name_prefix)) return {};
  const std::string digits = name.substr(name_prefix.size());
  const bool numeric = std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
  if (!numeric || digits.empty() || digits.size() > 18) return {};
  const std::int64_t step = std::stoll(digits);
  if (checkpoint_name(step) != name) return {};
  return step;
}

std::string sum_line(std::string_view manifest_text) {
  return fmt::format("{}  {}\n", sha256_hex(manifest_text), manifest_file);
}

// Makes a rename or a new entry in a folder outlive a power failure.
void require_synced(const fs::path& folder) {
  if (const int reason = sync_folder(folder); reason != 0)
    throw run_error("the folder '{}' cannot be synced: {}.", folder.string(), std::strerror(reason));
}

}  // namespace

std::string checkpoint_name(std::int64_t step) {
  return fmt::format("{}{:08}", name_prefix, step);
}

std::vector<CheckpointEntry> list_checkpoints(const fs::path& directory) {
  std::vector<CheckpointEntry> entries;
  try {
    if (!fs::is_directory(directory)) return entries;
    for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
      const auto step = step_of(entry.path().filename().string());
      if (step && entry.is_directory()) entries.push_back({*step, entry.path()});
    }
  } catch (const fs::filesystem_error& failed) {
    throw data_error("the folder of checkpoints '{}' cannot be read ({}: {}); correct that; nothing is lost.",
                     directory.string(), failed.path1().string(), failed.code().message());
  }
  std::ranges::sort(entries, {}, &CheckpointEntry::step);
  return entries;
}

Checkpoint open_checkpoint(const fs::path& path) {
  const fs::path manifest_path = path / manifest_file, sum_path = path / manifest_sum_file;
  const std::string text = read_file(manifest_path, kLargestDescription);
  if (read_file(sum_path, kLargestDescription) != sum_line(text)) {
    throw data_error(
        "the checkpoint's '{}' and '{}' do not agree: one of them was changed; use another checkpoint.",
        manifest_path.string(), sum_path.string());
  }
  CheckpointManifest manifest = manifest_from_json(text, manifest_path.string());
  if (manifest.files.size() != 1 || manifest.files[0].name != checkpoint_tensors_file) {
    throw data_error("'{}' lists other files than '{}'; use another checkpoint.", manifest_path.string(),
                     checkpoint_tensors_file);
  }
  const fs::path tensors_path = path / checkpoint_tensors_file;
  if (sha256_hex_of_file(tensors_path) != manifest.files[0].sha256) {
    throw data_error(
        "the checkpoint file '{}' was changed: its sha256 is not that of its manifest; use "
        "another checkpoint.",
        tensors_path.string());
  }
  return {path, std::move(manifest), SafetensorsFile(tensors_path)};
}

std::optional<Checkpoint> newest_sound_checkpoint(const fs::path& directory,
                                                  std::vector<std::string>& damaged) {
  std::vector<CheckpointEntry> entries = list_checkpoints(directory);
  if (entries.empty()) return {};
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    try {
      return open_checkpoint(entry->path);
    } catch (const Error& error) {
      damaged.push_back(error.what());
    }
  }
  throw data_error("none of the {} checkpoints in '{}' is sound; of the newest: {}", entries.size(),
                   directory.string(), damaged.front());
}

Checkpoint find_checkpoint(const fs::path& path) {
  std::error_code failed;
  if (fs::exists(path / manifest_file, failed) || step_of(path.filename().string())) {
    return open_checkpoint(path);
  }
  std::vector<std::string> damaged;
  for (const fs::path& directory : {path / "checkpoints", path}) {
    if (auto found = newest_sound_checkpoint(directory, damaged)) return std::move(*found);
  }
  throw data_error(
      "'{}' is neither a checkpoint nor a run directory with one; name a folder such as "
      "runs/NAME/checkpoints/{}.",
      path.string(), checkpoint_name(1234));
}

fs::path write_checkpoint(const fs::path& directory, CheckpointManifest manifest,
                          const std::vector<StoredTensor>& tensors) {
  const std::string name = checkpoint_name(manifest.step);
  const TemporaryPath made(directory / (std::string(temporary_prefix) + name));  // goes unless it is renamed
  std::error_code failed;
  fs::remove_all(made.path(), failed);
  fs::create_directories(made.path(), failed);
  if (failed) throw run_error("the folder '{}' cannot be made: {}.", made.path().string(), failed.message());
  const fs::path tensors_path = made.path() / checkpoint_tensors_file;
  write_safetensors(tensors_path, tensors,
                    {{"format", "mulligan checkpoint tensors"}, {"step", std::to_string(manifest.step)}});
  manifest.files = {{checkpoint_tensors_file, fs::file_size(tensors_path), sha256_hex_of_file(tensors_path)}};
  const std::string text = to_json(manifest);
  write_file_atomically(made.path() / manifest_file, text);
  write_file_atomically(made.path() / manifest_sum_file, sum_line(text));
  require_synced(made.path());
  const fs::path final = directory / name;
  // Where the step was saved before, the old folder takes the temporary name.
  if (::renameat2(AT_FDCWD, made.path().c_str(), AT_FDCWD, final.c_str(),
                  fs::exists(final) ? RENAME_EXCHANGE : 0) != 0) {
    throw run_error("the checkpoint '{}' cannot be renamed into place: {}.", final.string(),
                    std::strerror(errno));
  }
  require_synced(directory);
  return final;
}

fs::path foreign_file_of_checkpoint(const fs::path& path) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, ignored)) {
    const std::string whole = entry.path().filename().string();
    const std::string name = whole.substr(0, whole.find(".tmp."));
    const bool ours = name == manifest_file || name == manifest_sum_file || name == checkpoint_tensors_file;
    if (!ours || entry.is_directory(ignored)) return entry.path();
  }
  return {};
}

void keep_newest_checkpoints(const fs::path& directory, std::int64_t keep) {
  const std::vector<CheckpointEntry> entries = list_checkpoints(directory);
  std::error_code ignored;  // what cannot be removed now is tried again after the next checkpoint
  for (std::size_t i = 0; i + static_cast<std::size_t>(keep) < entries.size(); ++i) {
    if (!foreign_file_of_checkpoint(entries[i].path).empty()) continue;
    const fs::path nameless = directory / (std::string(removed_prefix) + entries[i].path.filename().string());
    fs::remove_all(nameless, ignored);
    fs::rename(entries[i].path, nameless, ignored);
    fs::remove_all(nameless, ignored);
  }
}

void remove_checkpoint_leftovers(const fs::path& directory) {
  std::vector<fs::path> leftovers;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(temporary_prefix) || name.starts_with(removed_prefix)) {
      leftovers.push_back(entry.path());
    }
  }
  for (const fs::path& path : leftovers) {
    if (foreign_file_of_checkpoint(path).empty()) fs::remove_all(path, ignored);
  }
}

std::vector<fs::path> set_aside_later_checkpoints(const fs::path& directory, std::int64_t step) {
  std::vector<fs::path> moved;
  for (const CheckpointEntry& entry : list_checkpoints(directory)) {
    if (entry.step <= step) continue;
    fs::path target = directory / ("set_aside_" + entry.path.filename().string());
    for (int number = 2; fs::exists(target); ++number) {
      target = directory / fmt::format("set_aside_{}_{}", number, entry.path.filename().string());
    }
    std::error_code failed;
    fs::rename(entry.path, target, failed);
    if (failed) {
      throw run_error("the later checkpoint '{}' cannot be renamed: {}.", entry.path.string(),
                      failed.message());
    }
    moved.push_back(target);
  }
  return moved;
}

}  // namespace mulligan
