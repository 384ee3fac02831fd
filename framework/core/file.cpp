#include "framework/core/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "framework/core/descriptor.h"
#include "framework/core/error.h"
#include "framework/core/input_file.h"
#include "framework/core/sha256.h"
#include "framework/core/temporary_path.h"

namespace mulligan {
namespace {

// Beyond a file's reported size so much is read at a time.
constexpr std::size_t kReadBlock = 1 << 16;

}  // namespace

std::string read_file(const std::filesystem::path& path, std::uint64_t largest) {
  const InputFile file(path);
  const auto refuse_size = [&] {
    throw data_error("cannot read '{}': it has more than {} bytes, the most that is read of such a file",
                     path.string(), largest);
  };
  if (file.size() > largest) refuse_size();
  std::string bytes(file.size(), '\0');
  std::size_t filled = 0;
  // The size is only a first guess: files of /proc report none, and a file may grow meanwhile.
  for (;;) {
    if (filled == bytes.size()) bytes.resize(filled + kReadBlock);
    const std::size_t count =
        file.read_some(filled, std::as_writable_bytes(std::span(bytes)).subspan(filled));
    if (count == 0) break;
    filled += count;
    if (filled > largest) refuse_size();
  }
  bytes.resize(filled);
  return bytes;
}

void write_file_atomically(const std::filesystem::path& path, std::string_view bytes) {
  write_file_atomically(path, std::span(&bytes, 1));
}

void write_file_atomically(const std::filesystem::path& path, std::span<const std::string_view> parts) {
  const auto fail = [&](const char* action) {
    return run_error("cannot {} '{}': {}; free space or choose another folder", action, path.string(),
                     std::strerror(errno));
  };
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  if (error) {
    throw run_error("cannot create the folder '{}': {}", path.parent_path().string(), error.message());
  }
  const std::filesystem::path temporary = temporary_name(path);
  TemporaryPath unpublished(temporary);
  const Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (file.number() < 0) throw fail("create");
  for (const std::string_view bytes : parts) {
    for (std::size_t written = 0; written < bytes.size();) {
      const ssize_t count = ::write(file.number(), bytes.data() + written, bytes.size() - written);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw fail("write");
      written += static_cast<std::size_t>(count);
    }
  }
  if (::fsync(file.number()) != 0) throw fail("sync");
  unpublished.publish(path, [&] {
    if (::rename(temporary.c_str(), path.c_str()) != 0) throw fail("rename into place");
  });
}

int sync_folder(const std::filesystem::path& folder) {
  const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return opened.number() >= 0 && ::fsync(opened.number()) == 0 ? 0 : errno;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

std::string sha256_hex_of_file(const std::filesystem::path& path) {
  const InputFile file(path);
  Sha256 hash;
  std::vector<std::byte> buffer(1 << 20);
  std::uint64_t offset = 0;
  while (const std::size_t count = file.read_some(offset, buffer)) {
    hash.update(std::span<const std::byte>(buffer).first(count));
    offset += count;
  }
  return hash.hex();
}

}  // namespace mulligan
