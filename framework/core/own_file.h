// Files that a run writes line by line into its own directory.
#pragma once

#include <cstdio>
#include <filesystem>

namespace mulligan {

enum class FileStart { anew, append };

// Opens a file of its own for writing, as fopen does. Throws run_error naming the path: for what the system
// refuses, for a symbolic link (what it leads to is not the run's), and for what is not a regular file.
std::FILE* open_own_file(const std::filesystem::path& path, FileStart start);

}  // namespace mulligan
