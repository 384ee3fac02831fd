// Compiled code on disk, one file per key. Safe for several processes at once: a file appears under its name
// complete or not at all, and who finds another process at work on a key waits for it, or does something else
// first. Threads may share an object.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace mulligan::cuda {

class CompileCache {
 public:
  // Makes the directory; empty: nothing is kept. Where it cannot be made or written, nothing is kept either.
  explicit CompileCache(std::string directory);

  // What `make` returned for this very key, now or in an earlier process. A damaged file counts as missing. Nothing
  // where another process (or thread) is making it just now and `wait` is not set.
  std::optional<std::string> get(const std::string& key, const std::function<std::string()>& make,
                                 bool wait = true);

  const std::string& directory() const { return directory_; }

 private:
  bool read(const std::string& path, const std::string& key, std::string& value) const;
  void write(const std::string& path, const std::string& key, const std::string& value) const;

  std::string directory_;
};

// Writes a file under a temporary name next to `path` and renames it. False if that fails; errno is the reason.
bool replace_file(const std::string& path, const std::string& bytes);

// [backend] cache, or where users' caches live: $XDG_CACHE_HOME/mulligan/cuda, ~/.cache/mulligan/cuda.
std::string default_cache_directory();

}  // namespace mulligan::cuda
