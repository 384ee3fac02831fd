#include "plugins/backends/cuda/compile/compile_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

namespace mulligan::cuda {
namespace {

namespace fs = std::filesystem;

constexpr char kMagic[8] = {'M', 'L', 'G', 'C', 'O', 'D', 'E', '1'};

// FNV-1a. Only names files and finds damage: the key itself is stored and compared.
std::uint64_t fingerprint(const std::string& text) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

std::string hexadecimal(std::uint64_t value) {
  std::string text(16, '0');
  for (int i = 15; i >= 0; --i, value >>= 4)
    text[static_cast<std::size_t>(i)] = "0123456789abcdef"[value & 15];
  return text;
}

void put(std::string& out, std::uint64_t value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// An exclusive lock on a file, held while the object lives; without one where the file cannot be made.
class FileLock {
 public:
  explicit FileLock(const std::string& path) : file_(open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644)) {
    if (file_ >= 0) flock(file_, LOCK_EX);
  }
  ~FileLock() {
    if (file_ >= 0) close(file_);
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int file_;
};

}  // namespace

CompileCache::CompileCache(std::string directory) : directory_(std::move(directory)) {
  if (directory_.empty()) return;
  std::error_code error;
  fs::create_directories(directory_, error);
  if (error || access(directory_.c_str(), W_OK) != 0) directory_.clear();
}

std::string CompileCache::get(const std::string& key, const std::function<std::string()>& make) {
  if (directory_.empty()) return make();
  const std::string path = directory_ + "/" + hexadecimal(fingerprint(key));
  std::string value;
  if (read(path, key, value)) return value;
  const FileLock lock(path + ".lock");
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
  constexpr std::size_t kHeader = sizeof kMagic + sizeof numbers;
  if (bytes.size() < kHeader || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0) return false;
  std::memcpy(numbers, bytes.data() + sizeof kMagic, sizeof numbers);
  const std::string rest = bytes.substr(kHeader);
  if (numbers[0] != key.size() || numbers[1] != rest.size() - key.size() || rest.size() < key.size())
    return false;
  if (fingerprint(rest) != numbers[2] || rest.compare(0, key.size(), key) != 0) return false;
  value = rest.substr(key.size());
  return true;
}

void CompileCache::write(const std::string& path, const std::string& key, const std::string& value) const {
  std::string bytes(kMagic, sizeof kMagic);
  put(bytes, key.size());
  put(bytes, value.size());
  put(bytes, fingerprint(key + value));
  bytes += key + value;
  std::string temporary = path + ".XXXXXX";
  const int file = mkstemp(temporary.data());
  if (file < 0) return;  // a cache that cannot be written is no error
  const bool written =
      ::write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()) && fsync(file) == 0;
  close(file);
  if (!written || std::rename(temporary.c_str(), path.c_str()) != 0) unlink(temporary.c_str());
}

std::string default_cache_directory() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    return std::string(cache) + "/mulligan/cuda";
  if (const char* home = std::getenv("HOME"); home && *home)
    return std::string(home) + "/.cache/mulligan/cuda";
  return "";
}

}  // namespace mulligan::cuda
