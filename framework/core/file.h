// Files: whole-file reads and atomic writes. Nothing the project writes is ever seen half-written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace mulligan {

// The most bytes a file read as a whole may have, unless its reader knows better: texts, artifacts, metrics.
inline constexpr std::uint64_t kLargestFile = std::uint64_t{4} << 30;
// Of files that describe something: manifests, results, configurations.
inline constexpr std::uint64_t kLargestDescription = std::uint64_t{256} << 20;

// The folder that a file lies in; "." for a bare name.
inline std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}

// Reads a whole regular file as bytes. Throws data_error naming the path and the reason: what the system
// says, or that it is a folder, a pipe or a device (which may never end), or has more than `largest` bytes.
std::string read_file(const std::filesystem::path& path, std::uint64_t largest = kLargestFile);

// Writes `bytes` to a temporary name next to `path`, syncs it to the disk, and renames it into place;
// creates missing parent folders. On failure the temporary file is removed, an existing `path` is
// untouched, and run_error names the path and the system's reason.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);
// The same with the contents in several parts, written one after another.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::string_view> parts);

// Lower-case hexadecimal sha256 of a byte range, or of a regular file's contents (streamed). Throws
// data_error as read_file does.
std::string sha256_hex(std::string_view bytes);
std::string sha256_hex_of_file(const std::filesystem::path& path);

// Brings what was made, renamed or removed in the folder to the disk. Returns 0, or the system's reason (errno).
int sync_folder(const std::filesystem::path& folder);

}  // namespace mulligan
