// A file that appears under its name complete or not at all.
#pragma once

#include <string>

namespace mulligan::cuda {

// Writes `bytes` under a temporary name next to `path`, to the disk, and renames it. False when that fails,
// and then errno says why; nothing temporary remains.
bool replace_file(const std::string& path, const std::string& bytes);

}  // namespace mulligan::cuda
