// A folder that appears whole or not at all.
#pragma once

#include <filesystem>
#include <optional>

#include "framework/core/directory_lock.h"
#include "framework/core/temporary_path.h"

namespace mulligan {

// Files are written into "TARGET.preparing" next to the target; publish() renames it into place. Before that the target is
// unchanged; afterwards it holds the new files alone. The next process for a target removes the remains of a killed one.
// Two processes for one target at a time are refused.
class OutputFolder {
 public:
  // With `overwrite` the target may hold prepared data and nothing else, which is replaced. Throws config_error if it holds
  // anything else, is not a folder, is a mount point (which cannot be renamed), or is being prepared by another process. Throws
  // run_error if the system refuses to make the folder. What was written is removed with the object, unless it was published.
  OutputFolder(const std::filesystem::path& target, bool overwrite);

  const std::filesystem::path& path() const { return work_; }  // where to write
  // Checks once more that the target may be replaced, and puts the new folder in its place in one step.
  // Throws as the constructor does; the target is then untouched.
  void publish();

 private:
  void check_target() const;

  std::filesystem::path target_;
  std::filesystem::path work_;
  bool overwrite_;
  std::optional<DirectoryLock> lock_;
  std::optional<TemporaryPath> temporary_;  // the work folder, also removed when a signal ends the process
};

}  // namespace mulligan
