#include "framework/core/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <utility>

#include "framework/core/error.h"

namespace mulligan {
namespace {

std::int64_t nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

using Words = std::array<std::uint32_t, BlockDigests::block_bytes / sizeof(std::uint32_t)>;

std::uint64_t block_digest(std::span<const std::byte> block) {
  static const Words key = [] {
    std::random_device unknown;
    Words words;
    std::ranges::generate(words, std::ref(unknown));
    return words;
  }();
  Words words{};
  std::memcpy(words.data(), block.data(), block.size());
  std::uint64_t digest = 0;  // NH, of UMAC
  for (std::size_t i = 0; i < words.size(); i += 2)
    digest += std::uint64_t{words[i] + key[i]} * (words[i + 1] + key[i + 1]);
  return digest;
}

std::mutex checked_mutex;
std::map<FileStamp, std::shared_ptr<const BlockDigests>> checked_files;

}  // namespace

void BlockDigests::add(std::span<const std::byte> bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += block_bytes)
    digests_.push_back(block_digest(bytes.subspan(at, std::min(block_bytes, bytes.size() - at))));
}

bool BlockDigests::hold(std::uint64_t offset, std::span<const std::byte> bytes) const {
  for (std::size_t at = 0, i = offset / block_bytes; at < bytes.size(); at += block_bytes, ++i) {
    const auto block = bytes.subspan(at, std::min(block_bytes, bytes.size() - at));
    if (i >= digests_.size() || digests_[i] != block_digest(block)) return false;
  }
  return true;
}

void keep_checked(const FileStamp& file, BlockDigests blocks) {
  auto kept = std::make_shared<const BlockDigests>(std::move(blocks));
  const std::lock_guard lock(checked_mutex);
  checked_files[file] = std::move(kept);
}

InputFile::InputFile(const std::filesystem::path& path) : path_(path) {
  // O_NONBLOCK: opening a pipe must not wait for a writer. It means nothing for regular files.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) {
    throw data_error("cannot open '{}': {}; check the path and its permissions", path.string(),
                     std::strerror(errno));
  }
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(std::exchange(descriptor_, -1));
    throw data_error("cannot read '{}': it is not a regular file", path.string());
  }
  stamp_ = {status.st_dev, status.st_ino, static_cast<std::uint64_t>(status.st_size),
            nanoseconds(status.st_mtim), nanoseconds(status.st_ctim)};
  const std::lock_guard lock(checked_mutex);
  if (const auto found = checked_files.find(stamp_); found != checked_files.end()) checked_ = found->second;
}

InputFile::InputFile(InputFile&& other) noexcept {
  *this = std::move(other);
}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(stamp_, other.stamp_);
  std::swap(checked_, other.checked_);
  return *this;
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void InputFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  constexpr std::uint64_t block = BlockDigests::block_bytes, at_once = 256 * block;
  if (!checked_) return read_unchecked(offset, out);
  thread_local std::vector<std::byte> blocks;
  while (!out.empty()) {
    const std::uint64_t from = offset / block * block, count = std::min(out.size(), from + at_once - offset);
    blocks.resize(std::min((offset + count + block - 1) / block * block, size()) - from);
    read_unchecked(from, blocks);
    if (!checked_->hold(from, blocks)) {
      throw data_error(
          "'{}' holds other bytes near {} than when it was checked: it was written to while it was being "
          "used; leave it alone, and start again",
          path_.string(), offset);
    }
    std::copy_n(blocks.begin() + static_cast<std::ptrdiff_t>(offset - from), count, out.begin());
    out = out.subspan(count);
    offset += count;
  }
}

void InputFile::read_unchecked(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t count = ::pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      throw data_error("cannot read '{}' at byte {}: {}; check the disk or copy the file again",
                       path_.string(), offset, std::strerror(errno));
    }
    if (count == 0) {
      throw data_error(
          "'{}' ends at byte {}, but had {} bytes when it was opened: it was changed while it was read; copy "
          "it again and leave it alone",
          path_.string(), offset, stamp_.bytes);
    }
    out = out.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
}

}  // namespace mulligan
