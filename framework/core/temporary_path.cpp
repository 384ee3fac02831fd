#include "framework/core/temporary_path.h"

#include <mutex>
#include <set>

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
  std::error_code ignored;
  if (!kept_) std::filesystem::remove_all(path_, ignored);
  paths().erase(paths().find(path_));
}

void remove_temporaries_for_good() {
  mutex().lock();
  std::error_code ignored;
  for (const std::filesystem::path& path : paths()) std::filesystem::remove_all(path, ignored);
}

}  // namespace mulligan
