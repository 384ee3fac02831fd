// DirectoryLock: one process at a time works in a folder.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace mulligan {

// Holds a lock of the system (flock) on the file `.lock` in the folder, which ends with the process however
// that ends, so a lock is never stale on a machine's own disks. The file names who holds it: command,
// process, host and start time.
class DirectoryLock {
 public:
  enum class Kind {
    exclusive,  // for a command that writes a run's files
    shared,     // for one that reads them for long: many at once, but none that writes
  };
  // Makes the folder where it is absent; it goes again with the object if it is still empty then. A folder
  // that was renamed meanwhile stays, with its lock file. Throws config_error, naming the holder and what to do,
  // when another process holds the folder; run_error when the folder or its lock cannot be made (shared: a folder that may
  // not be written to is not locked).
  DirectoryLock(const std::filesystem::path& directory, std::string_view command,
                Kind kind = Kind::exclusive);
  ~DirectoryLock();
  DirectoryLock(DirectoryLock&& other) noexcept;
  DirectoryLock& operator=(DirectoryLock&&) = delete;

  // A sentence for people where the file system cannot lock, so that nothing is kept out; else empty.
  const std::string& warning() const { return warning_; }

 private:
  std::filesystem::path directory_;
  int descriptor_ = -1;
  bool made_directory_ = false;
  std::string warning_;
};

inline constexpr const char* directory_lock_file = ".lock";

}  // namespace mulligan
