// A folder that appears whole or not at all.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "framework/core/directory_lock.h"
#include "framework/core/temporary_path.h"

namespace mulligan {

// Files are written into "TARGET.preparing" next to the target; publish() renames it into place. Before that the target is
// unchanged; afterwards it holds the new files alone. The next process for a target removes the remains of a killed one.
// Two processes for one target at a time are refused.
class OutputFolder {
 public:
  // Throws unless an existing, non-empty target may be replaced by the new folder.
  using MayReplace = std::function<void(const std::filesystem::path&)>;

  // Throws config_error if the target is not a folder, must not be replaced, is a mount point (which cannot be renamed), or is being
  // prepared by another process. Throws run_error if the system refuses to make the folder. What was written is removed with the object,
  // unless it was published.
  OutputFolder(const std::filesystem::path& target, MayReplace may_replace);

  const std::filesystem::path& path() const { return work_; }  // where to write
  // Asks once more whether the target may be replaced, and puts the new folder in its place in one step.
  // Throws as the constructor does; the target is then untouched.
  void publish();

 private:
  void check_target() const;

  std::filesystem::path target_;
  std::filesystem::path work_;
  MayReplace may_replace_;
  std::optional<DirectoryLock> lock_;
  std::optional<TemporaryPath> temporary_;  // the work folder, also removed when a signal ends the process
};

}  // namespace mulligan
