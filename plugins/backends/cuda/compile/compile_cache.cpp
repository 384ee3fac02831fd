#include "plugins/backends/cuda/compile/compile_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "plugins/backends/cuda/compile/fingerprint.h"

namespace mulligan::cuda {
namespace {

namespace fs = std::filesystem;

constexpr char kCacheMagic[8] = {'M', 'L', 'G', 'C', 'O', 'D', 'E', '1'};

void put(std::string& out, std::uint64_t value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// An exclusive lock on a file, held while the object lives. Where the file cannot be made there is none, and
// nobody to share with.
class FileLock {
 public:
  FileLock(const std::string& path, bool wait)
      : file_(open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644)) {
    if (file_ >= 0) taken_ = flock(file_, wait ? LOCK_EX : LOCK_EX | LOCK_NB) == 0;
  }
  ~FileLock() {
    if (file_ >= 0) close(file_);
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  // Another process has it, or another thread.
  bool elsewhere() const { return file_ >= 0 && !taken_; }

 private:
  int file_;
  bool taken_ = false;
};

}  // namespace

CompileCache::CompileCache(std::string directory) : directory_(std::move(directory)) {
  if (directory_.empty()) return;
  std::error_code error;
  fs::create_directories(directory_, error);
  if (error || access(directory_.c_str(), W_OK) != 0) directory_.clear();
}

std::optional<std::string> CompileCache::get(const std::string& key, const std::function<std::string()>& make,
                                             bool wait) {
  if (directory_.empty()) return make();
  char name[17];
  std::snprintf(name, sizeof name, "%016llx", static_cast<unsigned long long>(fingerprint(key)));
  const std::string path = directory_ + "/" + name;
  std::string value;
  if (read(path, key, value)) return value;
  const FileLock lock(path + ".lock", wait);
  if (!wait && lock.elsewhere()) return std::nullopt;
  if (read(path, key, value)) return value;  // another process was faster
  value = make();
  write(path, key, value);
  return value;
}

// The file: magic, length of key, length of value, fingerprint of both, key, value.
bool CompileCache::read(const std::string& path, const std::string& key, std::string& value) const {
  std::ifstream file(path, std::ios::binary);
  if (!file) return false;
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::uint64_t numbers[3];
  constexpr std::size_t kHeader = sizeof kCacheMagic + sizeof numbers;
  if (bytes.size() < kHeader || std::memcmp(bytes.data(), kCacheMagic, sizeof kCacheMagic) != 0) return false;
  std::memcpy(numbers, bytes.data() + sizeof kCacheMagic, sizeof numbers);
  const std::string rest = bytes.substr(kHeader);
  if (numbers[0] != key.size() || numbers[1] != rest.size() - key.size() || rest.size() < key.size())
    return false;
  if (fingerprint(rest) != numbers[2] || rest.compare(0, key.size(), key) != 0) return false;
  value = rest.substr(key.size());
  return true;
}

void CompileCache::write(const std::string& path, const std::string& key, const std::string& value) const {
  std::string bytes(kCacheMagic, sizeof kCacheMagic);
  put(bytes, key.size());
  put(bytes, value.size());
  put(bytes, fingerprint(key + value));
  bytes += key + value;
  replace_file(path, bytes);  // a cache that cannot be written is not an error
}

bool replace_file(const std::string& path, const std::string& bytes) {
  std::string temporary = path + ".XXXXXX";  // unique in a folder that several machines share
  const int made = mkstemp(temporary.data());
  if (made < 0) return false;
  fchmod(made, 0644);
  close(made);
  std::ofstream file(temporary, std::ios::binary);
  file << bytes;
  file.close();
  if (file && std::rename(temporary.c_str(), path.c_str()) == 0) return true;
  const int reason = errno;
  std::remove(temporary.c_str());
  errno = reason;
  return false;
}

std::string default_cache_directory() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    return std::string(cache) + "/mulligan/cuda";
  if (const char* home = std::getenv("HOME"); home && *home)
    return std::string(home) + "/.cache/mulligan/cuda";
  return "";
}

}  // namespace mulligan::cuda
