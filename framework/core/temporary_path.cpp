#include "framework/core/temporary_path.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <set>
#include <vector>

#include "framework/core/error.h"

namespace mulligan {
namespace {

// Never destroyed: the thread that waits for signals may need them while the process ends.
std::mutex& mutex() {
  static auto& one = *new std::mutex;
  return one;
}
std::multiset<std::filesystem::path>& paths() {
  static auto& all = *new std::multiset<std::filesystem::path>;
  return all;
}
// In the order in which they got their names.
std::vector<std::filesystem::path>& published() {
  static auto& all = *new std::vector<std::filesystem::path>;
  return all;
}

}  // namespace

TemporaryPath::TemporaryPath(std::filesystem::path path) : path_(std::move(path)) {
  std::error_code failed;  // absolute: the process may change its folder before it ends
  std::filesystem::path absolute = std::filesystem::absolute(path_, failed);
  if (!failed) path_ = std::move(absolute);
  const std::lock_guard lock(mutex());
  paths().insert(path_);
}

TemporaryPath::~TemporaryPath() {
  const std::lock_guard lock(mutex());
  if (kept_) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  paths().erase(paths().find(path_));
}

void TemporaryPath::publish(const std::filesystem::path& target, const std::function<void()>& rename) {
  const std::lock_guard lock(mutex());
  rename();
  kept_ = true;
  // What has the name from now on is not this object's.
  paths().erase(paths().find(path_));
  std::erase(published(), target);
  published().push_back(target);
}

std::filesystem::path make_private_folder() {
  std::error_code failed;
  const std::filesystem::path place = std::filesystem::temp_directory_path(failed);
  std::string pattern = (place / "mulligan.XXXXXX").string();
  if (failed || ::mkdtemp(pattern.data()) == nullptr) {
    throw run_error(
        "cannot make a folder '{}': {}; set TMPDIR to a folder with free space that can be written to.",
        pattern, failed ? failed.message() : std::strerror(errno));
  }
  return pattern;
}

std::vector<std::filesystem::path> remove_temporaries_for_good() {
  mutex().lock();
  std::error_code ignored;
  for (const std::filesystem::path& path : paths()) std::filesystem::remove_all(path, ignored);
  std::vector<std::filesystem::path> there;
  for (auto path = published().rbegin(); path != published().rend(); ++path) {
    if (std::filesystem::exists(*path, ignored)) there.push_back(*path);
  }
  return there;
}

}  // namespace mulligan
