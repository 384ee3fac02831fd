// A whole file mapped read-only into memory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

namespace mulligan {

// Copies share the mapping. The bytes stay valid until the last of them is destroyed, also when the file is renamed or unlinked
// meanwhile (the project replaces files by rename only, so a mapped file never changes under its reader).
class MappedFile {
 public:
  MappedFile() = default;
  // Throws data_error naming the path and the system's reason. An empty file maps to an empty span.
  explicit MappedFile(const std::filesystem::path& path);

  std::span<const std::byte> bytes() const { return {data_.get(), size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_.get()), size_}; }

 private:
  std::shared_ptr<const std::byte> data_;
  std::size_t size_ = 0;
};

}  // namespace mulligan
