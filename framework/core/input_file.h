// A regular file that is read by position.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "framework/core/descriptor.h"

namespace mulligan {

// Which bytes a path stood for when it was opened: equal for two names of one unchanged file.
struct FileStamp {
  std::uint64_t device = 0, inode = 0, bytes = 0;
  std::int64_t modified_ns = 0, changed_ns = 0;  // of the contents, and of the inode
  auto operator<=>(const FileStamp&) const = default;
};

// Move-only; const functions may be called from several threads. Unlike a mapping, a file that shrinks or a
// disk that fails while it is read is an error message, not a signal.
class InputFile {
 public:
  // Throws data_error naming the path and the reason: what the system says, or that it is a folder, a pipe or a
  // device (which may never end).
  explicit InputFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return stamp_.bytes; }  // when it was opened
  const FileStamp& stamp() const { return stamp_; }    // when it was opened
  int descriptor() const { return descriptor_.number(); }

  // Fills `out` with the bytes from `offset` on. Throws data_error when the file has become shorter or the
  // disk refuses.
  void read(std::uint64_t offset, std::span<std::byte> out) const;
  // Reads up to out.size() bytes from `offset` on and returns how many; 0 at the end of the file.
  std::size_t read_some(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  std::filesystem::path path_;
  Descriptor descriptor_;
  FileStamp stamp_;
};

}  // namespace mulligan
