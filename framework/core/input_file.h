// A regular file that is read by position.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

namespace mulligan {

// Which bytes a path stood for when it was opened: equal for two names of one unchanged file.
struct FileStamp {
  std::uint64_t device = 0, inode = 0, bytes = 0;
  std::int64_t modified_ns = 0, changed_ns = 0;  // of the contents, and of the inode
  auto operator<=>(const FileStamp&) const = default;
};

// Digests of a file's blocks, by which who reads a part of it later knows whether these are the bytes that were checked. Time
// stamps do not say it: pages that are written to through a mapping in a memory file system change none. The digests
// have a key that this process draws, so nobody can look for other bytes that have the same (2^-32 for each trial).
class BlockDigests {
 public:
  static constexpr std::size_t block_bytes = 4096;
  // The next bytes of the file: whole blocks, but for its last.
  void add(std::span<const std::byte> bytes);
  // Whether these are bytes of the file from `offset` on, which is the beginning of a block, to the end of one.
  bool hold(std::uint64_t offset, std::span<const std::byte> bytes) const;

 private:
  std::vector<std::uint64_t> digests_;
};

// From now on, who opens this file in this process reads these bytes or gets data_error. May be called from several threads.
void keep_checked(const FileStamp& file, BlockDigests blocks);

// Move-only; const functions may be called from several threads. Unlike a mapping, a file that shrinks or a
// disk that fails while it is read is an error message, not a signal.
class InputFile {
 public:
  // Throws data_error naming the path and the system's reason, also for what is not a regular file (a pipe is
  // not waited for).
  explicit InputFile(const std::filesystem::path& path);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;
  ~InputFile();

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return stamp_.bytes; }  // when it was opened
  const FileStamp& stamp() const { return stamp_; }    // when it was opened
  int descriptor() const { return descriptor_; }

  // Fills `out` with the bytes from `offset` on. Throws data_error when the file has become shorter, the disk
  // refuses, or the bytes are others than those that keep_checked() was told before it was opened.
  void read(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  void read_unchecked(std::uint64_t offset, std::span<std::byte> out) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  FileStamp stamp_;
  std::shared_ptr<const BlockDigests> checked_;  // null: nobody has checked it
};

}  // namespace mulligan
