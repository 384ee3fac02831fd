#include "framework/core/own_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "framework/core/error.h"

namespace mulligan {

OwnFile::OwnFile(const std::filesystem::path& path, FileStart start) {
  const auto refuse = [&](const char* why) {
    return run_error("the file '{}' cannot be written: {}.", path.string(), why);
  };
  const int how = start == FileStart::append ? O_APPEND : 0;
  // O_NONBLOCK: a FIFO would wait for a reader.
  file_ =
      Descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | how, 0644));
  if (!is_open()) {
    const bool link = errno == ELOOP && std::filesystem::is_symlink(path);
    throw refuse(link ? "it is a symbolic link, and what that leads to is not the run's; remove it"
                      : std::strerror(errno));
  }
  struct stat status {};
  if (::fstat(file_.number(), &status) != 0 || !S_ISREG(status.st_mode))
    throw refuse("it is not a regular file; remove it");
  if (start == FileStart::anew && ::ftruncate(file_.number(), 0) != 0) throw refuse(std::strerror(errno));
}

int OwnFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file_.number(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count < 0 ? errno : EIO;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

}  // namespace mulligan
