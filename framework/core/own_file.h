// A file that a run writes line by line into its own directory.
#pragma once

#include <filesystem>
#include <string_view>

#include "framework/core/descriptor.h"

namespace mulligan {

enum class FileStart { anew, append };

class OwnFile {
 public:
  OwnFile() = default;  // none
  // Throws run_error naming the path: for what the system refuses, for a symbolic link (what it leads to is not the run's), and for
  // what is not a regular file.
  OwnFile(const std::filesystem::path& path, FileStart start);
  bool is_open() const { return file_.number() >= 0; }
  // Passes the bytes to the system. Returns its reason (errno) if it refuses some, else 0.
  int write(std::string_view bytes);

 private:
  Descriptor file_;
};

}  // namespace mulligan
