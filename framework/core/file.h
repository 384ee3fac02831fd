// Files: whole-file reads and atomic writes. Nothing the project writes is ever seen half-written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace mulligan {

// Reads a whole file as bytes. Throws data_error naming the path and the system's reason.
std::string read_file(const std::filesystem::path& path);

// Writes `bytes` to a temporary name beside `path`, syncs it to the disk, and renames it into place;
// creates missing parent folders. On failure the temporary file is removed, an existing `path` is
// untouched, and run_error names the path and the system's reason.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);
// The same with the contents in several parts, written one after another.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::string_view> parts);

// Lower-case hexadecimal sha256 of a byte range, or of a file's contents (streamed).
std::string sha256_hex(std::string_view bytes);
std::string sha256_hex_of_file(const std::filesystem::path& path);

}  // namespace mulligan
