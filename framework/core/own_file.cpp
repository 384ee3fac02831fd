#include "framework/core/own_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "framework/core/error.h"

namespace mulligan {

std::FILE* open_own_file(const std::filesystem::path& path, FileStart start) {
  const int how = start == FileStart::append ? O_APPEND : 0;
  // O_NONBLOCK: a FIFO would wait for a reader.
  const int descriptor =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | how, 0644);
  if (descriptor < 0) {
    const bool link = errno == ELOOP && std::filesystem::is_symlink(path);
    throw run_error("the file '{}' cannot be written: {}.", path.string(),
                    link ? "it is a symbolic link, and what that leads to is not the run's; remove it"
                         : std::strerror(errno));
  }
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    throw run_error("the file '{}' cannot be written: it is not a regular file; remove it.", path.string());
  }
  const bool emptied = start == FileStart::append || ::ftruncate(descriptor, 0) == 0;
  std::FILE* file = emptied ? ::fdopen(descriptor, start == FileStart::append ? "a" : "w") : nullptr;
  if (file) return file;
  const int reason = errno;
  ::close(descriptor);
  throw run_error("the file '{}' cannot be written: {}.", path.string(), std::strerror(reason));
}

}  // namespace mulligan
