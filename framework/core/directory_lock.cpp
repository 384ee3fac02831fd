#include "framework/core/directory_lock.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/printable.h"
#include "framework/core/temporary_path.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

std::string own_holder(std::string_view command) {
  return fmt::format("mulligan {}, process {} on host {}, since {:%Y-%m-%d %H:%M:%S} UTC", command, getpid(),
                     host_name(), fmt::gmtime(std::time(nullptr)));
}

std::string read_holder(int descriptor) {
  std::array<char, 400> text{};
  const ssize_t bytes = pread(descriptor, text.data(), text.size(), 0);
  std::string holder(text.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  holder = printable(holder.substr(0, holder.find('\n')));
  return holder.empty() ? "another process" : holder;
}

// Whether the path still names the open file: its last holder may have removed it in between.
bool still_there(int descriptor, const fs::path& path) {
  struct stat open_file {
  }, named{};
  return fstat(descriptor, &open_file) == 0 && lstat(path.c_str(), &named) == 0 &&
         open_file.st_ino == named.st_ino && open_file.st_dev == named.st_dev;
}

}  // namespace

DirectoryLock::DirectoryLock(const fs::path& directory, std::string_view command, Kind kind)
    : directory_(directory.empty() ? "." : directory) {
  std::error_code failed;
  made_directory_ = fs::create_directories(directory_, failed);
  if (failed) {
    throw run_error("the folder '{}' cannot be made: {}; choose another, or correct that.",
                    directory_.string(), failed.message());
  }
  const fs::path path = directory_ / directory_lock_file;
  while (true) {
    descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
    if (descriptor_ < 0) {
      if (kind == Kind::shared) return;
      throw run_error("the folder '{}' cannot be written to: {}; check its permissions, or choose another.",
                      directory_.string(), std::strerror(errno));
    }
    if (::flock(descriptor_, (kind == Kind::exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0) {
      const int reason = errno;
      const std::string holder = read_holder(descriptor_);
      ::close(std::exchange(descriptor_, -1));
      if (reason == EINTR) continue;
      if (reason == EWOULDBLOCK) {
        throw config_error(
            "'{}' is in use by {}; wait until that has ended, stop it, or choose another directory. (A "
            "lock ends with its process; if that host is gone and a network file system keeps its lock, "
            "remove '{}'.)",
            directory_.string(), holder, path.string());
      }
      warning_ = fmt::format(
          "the file system of '{}' cannot lock ({}): see to it yourself that no two commands work "
          "in it at once",
          directory_.string(), std::strerror(reason));
      return;
    }
    if (still_there(descriptor_, path)) break;
    ::close(descriptor_);
  }
  const std::string holder = own_holder(command) + "\n";
  if (::ftruncate(descriptor_, 0) != 0 ||
      ::pwrite(descriptor_, holder.data(), holder.size(), 0) != static_cast<ssize_t>(holder.size())) {
    warning_ =
        fmt::format("'{}' could not be written ({}): another command will not know who holds the folder",
                    path.string(), std::strerror(errno));
  }
}

DirectoryLock::DirectoryLock(DirectoryLock&& other) noexcept
    : directory_(std::move(other.directory_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      made_directory_(std::exchange(other.made_directory_, false)),
      warning_(std::move(other.warning_)) {}

DirectoryLock::~DirectoryLock() {
  if (descriptor_ >= 0) {
    // Removed under the exclusive lock, so that a process that opened it meanwhile sees that it is gone. If the folder was
    // renamed or removed, its name may be another process's, which keeps folder and lock.
    const fs::path path = directory_ / directory_lock_file;
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 && still_there(descriptor_, path)) {
      ::unlink(path.c_str());
    } else {
      made_directory_ = false;
    }
    ::close(descriptor_);
  }
  if (made_directory_) ::rmdir(directory_.c_str());
}

}  // namespace mulligan
