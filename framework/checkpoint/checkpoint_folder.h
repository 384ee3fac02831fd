// Checkpoint folders on disk: their names, whether they are complete, and which one to continue from.
//
//   <directory>/step_00001234/tensors.safetensors   the tensors
//                             manifest.json          everything else, with size and sha256 of each file
//                             manifest.json.sha256   of the manifest, in the format of sha256sum
// A folder with such a name is complete, because it was written under a hidden name, synced and renamed. The sums cover every
// byte of it.
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

// A checkpoint found by name; it is not yet verified.
struct CheckpointEntry {
  std::int64_t step = 0;
  std::filesystem::path path;
};

// "step_00001234"
std::string checkpoint_name(std::int64_t step);
// The folders in `directory` with such a name, by step. Empty if there is no such directory. Throws data_error if it cannot be
// read, because its contents are unknown then.
std::vector<CheckpointEntry> list_checkpoints(const std::filesystem::path& directory);

// A checkpoint with every byte verified; on ranks other than the first without its tensors.
struct Checkpoint {
  std::filesystem::path path;
  CheckpointManifest manifest;
  SafetensorsFile tensors;
};

// Opens and verifies one checkpoint folder. Throws data_error that names the file and the fault: a missing or changed file, another
// format version, tensors that are not well-formed.
Checkpoint open_checkpoint(const std::filesystem::path& path);

// The newest sound checkpoint of a directory; `damaged` receives the sentences of newer ones that were refused. Absent if no folder
// has a checkpoint's name. Throws data_error if none of them is sound.
std::optional<Checkpoint> newest_sound_checkpoint(const std::filesystem::path& directory,
                                                  std::vector<std::string>& damaged);

// Resolves the user's `path`: a checkpoint folder, or the newest sound one of a run directory or of a directory of checkpoints.
// Throws data_error if there is none.
Checkpoint find_checkpoint(const std::filesystem::path& path);

// Writes a complete checkpoint folder under its own name in `directory`: temporary folder, sync, rename. Fills in `manifest.files`.
// Throws run_error that names the path and the system's
// reason; then nothing of the attempt remains and earlier checkpoints are unchanged. Returns the folder.
std::filesystem::path write_checkpoint(const std::filesystem::path& directory, CheckpointManifest manifest,
                                       const std::vector<StoredTensor>& tensors);

// The first entry of a checkpoint's folder that no writer of checkpoints made; empty: none. A folder with such an entry is never
// removed.
std::filesystem::path foreign_file_of_checkpoint(const std::filesystem::path& path);

// Removes all but the newest `keep` (>= 1) checkpoints. A folder first loses its name, so no half of one is ever visible.
void keep_newest_checkpoints(const std::filesystem::path& directory, std::int64_t keep);
// Removes what killed writers and removers left.
void remove_checkpoint_leftovers(const std::filesystem::path& directory);
// Renames checkpoints of later steps than `step`, so that they do not count as the newest of a run that continues from there.
// Returns their new paths.
std::vector<std::filesystem::path> set_aside_later_checkpoints(const std::filesystem::path& directory,
                                                               std::int64_t step);

}  // namespace mulligan
