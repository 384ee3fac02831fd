// TemporaryPath: what is written under a temporary name until it is complete, and must not
// outlive its writer.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace mulligan {

// Name of this machine in the network, of at most 255 bytes; "unknown" if the system gives none.
std::string host_name();

// Names of files that are being written: NAME.tmp.PROCESS.NUMBER.RANK.HOST, next to NAME.

// A name that no other process uses, on this machine or on one that shares the disk, for what will be `path`.
std::filesystem::path temporary_name(const std::filesystem::path& path);

// "NAME" of a temporary name; "" for other names.
std::string name_of_temporary(const std::string& file_name);

// Whether the process that was writing a temporary has ended. Of another machine's nothing can be known: its
// process counts as ended an hour after it wrote last. False for other names.
bool is_left_behind(const std::filesystem::path& path);

// Makes nothing itself. Whatever lies at the path (a folder with all in it) is removed with the object, and
// also when a signal ends the process, unless it was published before.
class TemporaryPath {
 public:
  explicit TemporaryPath(std::filesystem::path path);
  ~TemporaryPath();
  TemporaryPath(const TemporaryPath&) = delete;
  TemporaryPath& operator=(const TemporaryPath&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Renames what lies here to `target`, by `rename` where it is given; both throw run_error. A signal that ends the process
  // finds it either here or there. `rename` must not make or end a TemporaryPath.
  void publish(const std::filesystem::path& target, const std::function<void()>& rename = {});

 private:
  std::filesystem::path path_;
  bool kept_ = false;
};

// Makes a new empty folder in the system's folder for temporary files, which only this user can enter and
// with an unpredictable name. Throws run_error.
std::filesystem::path make_private_folder();

// Where users' caches live: $XDG_CACHE_HOME/mulligan/NAME, else ~/.cache/mulligan/NAME; empty where neither variable is set.
// It need not exist.
std::filesystem::path cache_folder(const std::string& name);

// Removes what lies at all TemporaryPaths that live. For the end of the process only: every thread that makes, publishes or
// ends a TemporaryPath after this waits forever.
void remove_temporaries_for_good();

}  // namespace mulligan
