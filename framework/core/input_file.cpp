#include "framework/core/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "framework/core/error.h"

namespace mulligan {
namespace {

std::int64_t nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

// O_NONBLOCK: opening a pipe must not wait for a writer. It means nothing for regular files.
InputFile::InputFile(const std::filesystem::path& path)
    : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  struct stat status {};
  const char* problem = nullptr;
  if (descriptor() < 0 || ::fstat(descriptor(), &status) != 0) {
    problem = errno == ENXIO ? "it is a socket" : std::strerror(errno);
  } else if (!S_ISREG(status.st_mode)) {
    problem = S_ISDIR(status.st_mode) ? "it is a folder" : "it is not a regular file but a pipe or a device";
  }
  if (problem)
    throw data_error("cannot read '{}': {}; check the path and its permissions", path.string(), problem);
  stamp_ = {status.st_dev, status.st_ino, static_cast<std::uint64_t>(status.st_size),
            nanoseconds(status.st_mtim), nanoseconds(status.st_ctim)};
}

std::size_t InputFile::read_some(std::uint64_t offset, std::span<std::byte> out) const {
  while (true) {
    const ssize_t count = ::pread(descriptor(), out.data(), out.size(), static_cast<off_t>(offset));
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno == EINTR) continue;
    throw data_error("cannot read '{}' at byte {}: {}; check the disk or copy the file again", path_.string(),
                     offset, std::strerror(errno));
  }
}

void InputFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const std::size_t count = read_some(offset, out);
    if (count == 0) {
      throw data_error(
          "'{}' ends at byte {}, but had {} bytes when it was opened: it was changed while it was read; copy "
          "it again and leave it alone",
          path_.string(), offset, stamp_.bytes);
    }
    out = out.subspan(count);
    offset += count;
  }
}

}  // namespace mulligan
