// TemporaryPath: what is written under a temporary name until it is complete, and must not
// outlive its writer.
#pragma once

#include <filesystem>

namespace mulligan {

// Makes nothing itself. Whatever lies at the path (a folder with all in it) is removed with the object, and
// also when a signal ends the process; keep() before that means that it was renamed into place.
class TemporaryPath {
 public:
  explicit TemporaryPath(std::filesystem::path path);
  ~TemporaryPath();
  TemporaryPath(const TemporaryPath&) = delete;
  TemporaryPath& operator=(const TemporaryPath&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void keep() { kept_ = true; }

 private:
  std::filesystem::path path_;
  bool kept_ = false;
};

// Removes what lies at all TemporaryPaths that live. For the end of the process only: every thread that makes
// or ends a TemporaryPath after this waits forever.
void remove_temporaries_for_good();

}  // namespace mulligan
