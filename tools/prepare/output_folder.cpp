#include "tools/prepare/output_folder.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>
#include <system_error>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/temporary_path.h"
#include "framework/data/manifest.h"

namespace mulligan {
namespace fs = std::filesystem;
namespace {

// The folder itself: absolute, links followed, no slash at its end.
fs::path resolved(const fs::path& target) {
  std::error_code error;
  fs::path path = fs::weakly_canonical(fs::absolute(target), error);
  if (error) {
    throw run_error("cannot use '{}' as the output folder: {}", target.string(), error.message());
  }
  return path.has_filename() ? path : path.parent_path();
}

constexpr const char* manifest_file = "manifest.json";

// Throws unless `folder`, which is not empty, may be replaced: only when asked to, and only a preparation
// that has no other files next to it.
void require_replaceable(const fs::path& folder, bool overwrite) {
  const bool prepared = fs::exists(folder / manifest_file);
  if (!prepared) {
    throw config_error(
        "the output folder '{}' is not empty (it holds '{}') and holds no prepared data; name a new folder",
        folder.string(), fs::directory_iterator(folder)->path().filename().string());
  }
  config_error_if(!overwrite,
                  "'{}' holds prepared data already; name another folder, or replace it with --overwrite",
                  folder.string());
  std::set<std::string> own{manifest_file, directory_lock_file};
  for (const FileDigest& file : load_manifest(folder).files()) own.insert(file.file);
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (own.contains(entry.path().filename().string())) continue;
    throw config_error(
        "'{}' is not part of the prepared data in '{}', which would be "
        "replaced with it; move it elsewhere or name another output folder",
        entry.path().filename().string(), folder.string());
  }
}

bool non_empty_folder(const fs::path& path) {
  std::error_code error;
  const bool empty = fs::is_empty(path, error);
  if (error) throw run_error("cannot read the folder '{}': {}", path.string(), error.message());
  return !empty;
}

}  // namespace

OutputFolder::OutputFolder(const fs::path& target, bool overwrite)
    : target_(resolved(target)), work_(target_.string() + ".preparing"), overwrite_(overwrite) {
  config_error_if(target_ == target_.parent_path(),
                  "'{}' cannot be the output folder; name a folder of its own", target.string());
  check_target();
  std::error_code error;
  config_error_if(fs::is_symlink(fs::symlink_status(work_, error)), "'{}' is a link; remove it",
                  work_.string());
  lock_.emplace(work_, "prepare");
  temporary_.emplace(work_);
  for (const auto& entry : fs::directory_iterator(work_)) {
    if (entry.path().filename() != directory_lock_file) fs::remove_all(entry.path());
  }
  // What a process that was killed in publish() had replaced.
  for (const auto& entry : fs::directory_iterator(work_.parent_path(), error)) {
    if (name_of_temporary(entry.path().filename()) == work_.filename() && is_left_behind(entry.path())) {
      fs::remove_all(entry.path(), error);
    }
  }
}

void OutputFolder::check_target() const {
  std::error_code error;
  const fs::file_status status = fs::status(target_, error);
  if (!fs::exists(status)) return;
  config_error_if(!fs::is_directory(status), "the output '{}' is a file, not a folder; name a new folder",
                  target_.string());
  struct stat inner {
  }, outer{};
  config_error_if(
      ::stat(target_.c_str(), &inner) == 0 && ::stat(target_.parent_path().c_str(), &outer) == 0 &&
          inner.st_dev != outer.st_dev,
      "the output '{}' is a mount point, which cannot be replaced as a whole; name a folder below "
      "it, such as '{}'",
      target_.string(), (target_ / "prepared").string());
  if (non_empty_folder(target_)) require_replaceable(target_, overwrite_);
}

void OutputFolder::publish() {
  std::error_code error;
  const auto fail = [&] {
    const int reason = errno;
    return run_error("cannot put the new folder in the place of '{}': {}", target_.string(),
                     std::strerror(reason));
  };
  sync_folder(work_);
  check_target();
  // The folder in whose place the new one comes; removed whole also where a signal ends the process meanwhile.
  const TemporaryPath old(temporary_name(work_));
  temporary_->publish(target_, [&] {
    if (!fs::exists(target_, error) || !non_empty_folder(target_)) {
      if (::rename(work_.c_str(), target_.c_str()) != 0) throw fail();
      return;
    }
    // Both names are exchanged in one step, so that at every moment one whole folder has the target's name.
    if (::renameat2(AT_FDCWD, work_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) == 0) {
      fs::rename(work_, old.path(), error);
      return;
    }
    if (errno != EINVAL && errno != ENOSYS && errno != EXDEV) throw fail();
    // A file system without exchange. If the process is killed between the two renames, the old folder is complete
    // under its second name.
    const fs::path second = target_.string() + ".replaced";
    if (::rename(target_.c_str(), second.c_str()) != 0) throw fail();
    if (::rename(work_.c_str(), target_.c_str()) != 0) {
      const Error refused = fail();
      fs::rename(second, target_, error);
      throw refused;
    }
    fs::rename(second, old.path(), error);
  });
  fs::remove(target_ / directory_lock_file, error);
  lock_.reset();
  sync_folder(target_.parent_path());
}

}  // namespace mulligan
