// Checkpoint folders on disk: their names, completeness, and which one to continue from.
//
//   <directory>/step_00001234/tensors.safetensors   the tensors
//                             manifest.json          everything else, with size and sha256 of each file
//                             manifest.json.sha256   of the manifest, in the format of sha256sum
// A folder of that name is complete: it was written under a hidden name, synced and renamed. Every byte of
// it is covered by one of the sums.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "framework/checkpoint/manifest.h"
#include "framework/core/safetensors.h"

namespace mulligan {

inline constexpr const char* checkpoint_tensors_file = "tensors.safetensors";

// A checkpoint found by name; whether it is sound is not yet known.
struct CheckpointEntry {
  std::int64_t step = 0;
  std::filesystem::path path;
};

// "step_00001234"
std::string checkpoint_name(std::int64_t step);
// The folders named so in `directory`, by step. Empty when there is no such directory; data_error when it
// cannot be read, since it is not known then what it holds.
std::vector<CheckpointEntry> list_checkpoints(const std::filesystem::path& directory);

// A checkpoint whose every byte was verified; on other ranks than the first without its tensors.
struct Checkpoint {
  std::filesystem::path path;
  CheckpointManifest manifest;
  SafetensorsFile tensors;
};

// Opens and verifies one checkpoint folder. Throws data_error naming the file and what is wrong with it: a
// missing or changed file, another format version, tensors that are not well-formed.
Checkpoint open_checkpoint(const std::filesystem::path& path);

// The newest sound checkpoint of a directory; `damaged` receives the sentences of newer ones that were
// refused. Absent when no folder is named like a checkpoint; data_error when none of them is sound.
std::optional<Checkpoint> newest_sound_checkpoint(const std::filesystem::path& directory,
                                                  std::vector<std::string>& damaged);

// What a user means by `path`: a checkpoint folder, or the newest sound one of a run directory or of a
// directory of checkpoints. Throws data_error where there is none.
Checkpoint find_checkpoint(const std::filesystem::path& path);

// Writes a complete checkpoint folder under its own name in `directory`: temporary folder, sync, rename.
// `manifest.files` is filled in. A folder of the same step is replaced in one instant where the file system
// can. Throws run_error naming the path and the system's reason; nothing of the attempt remains and earlier
// checkpoints are untouched. Returns the folder.
std::filesystem::path write_checkpoint(const std::filesystem::path& directory, CheckpointManifest manifest,
                                       const std::vector<StoredTensor>& tensors);

// The first thing in a checkpoint's folder that no writer of checkpoints made; empty: none. Such a folder
// is never removed.
std::filesystem::path foreign_file_of_checkpoint(const std::filesystem::path& path);

// Removes the oldest checkpoints but `keep` (>= 1); never a half of one: a folder loses its name first.
void keep_newest_checkpoints(const std::filesystem::path& directory, std::int64_t keep);
// Removes what writers and removers that were killed left.
void remove_checkpoint_leftovers(const std::filesystem::path& directory);
// Renames checkpoints of later steps than `step`, so that they are not taken for the newest of a run that
// continues from there. Returns their new paths.
std::vector<std::filesystem::path> set_aside_later_checkpoints(const std::filesystem::path& directory,
                                                               std::int64_t step);

}  // namespace mulligan
