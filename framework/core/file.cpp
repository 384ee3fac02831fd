#include "framework/core/file.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>

#include "framework/core/error.h"
#include "framework/core/temporary_path.h"

namespace mulligan {
namespace {

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr);
  }
  void update(std::string_view bytes) { EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()); }
  std::string hex() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    EVP_DigestFinal_ex(context_.get(), digest.data(), &size);
    std::string text;
    for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
    return text;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

// Closes the descriptor and removes the file unless told that it was renamed into place.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& path)
      : path_(path), descriptor_(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)) {}
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int descriptor() const { return descriptor_; }
  void keep() { path_.keep(); }

 private:
  TemporaryPath path_;
  int descriptor_;
};

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::error_code ignored;
  if (!stream || std::filesystem::is_directory(path, ignored)) {
    throw data_error("cannot read '{}': {}; check the path and its permissions", path.string(),
                     std::filesystem::is_directory(path, ignored) ? "it is a folder" : std::strerror(errno));
  }
  std::string bytes((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  if (stream.bad()) throw data_error("cannot read '{}': the disk reported an error", path.string());
  return bytes;
}

void write_file_atomically(const std::filesystem::path& path, std::string_view bytes) {
  write_file_atomically(path, std::span(&bytes, 1));
}

void write_file_atomically(const std::filesystem::path& path, std::span<const std::string_view> parts) {
  static std::atomic<unsigned> counter{0};
  const auto fail = [&](const char* action) {
    return run_error("cannot {} '{}': {}; free space or choose another folder", action, path.string(),
                     std::strerror(errno));
  };
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  if (error) {
    throw run_error("cannot create the folder '{}': {}", path.parent_path().string(), error.message());
  }
  const std::filesystem::path temporary =
      path.string() + fmt::format(".tmp.{}.{}", ::getpid(), counter.fetch_add(1));
  TemporaryFile file(temporary);
  if (file.descriptor() < 0) throw fail("create");
  for (const std::string_view bytes : parts) {
    for (std::size_t written = 0; written < bytes.size();) {
      const ssize_t count = ::write(file.descriptor(), bytes.data() + written, bytes.size() - written);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw fail("write");
      written += static_cast<std::size_t>(count);
    }
  }
  if (::fsync(file.descriptor()) != 0) throw fail("sync");
  if (::rename(temporary.c_str(), path.c_str()) != 0) throw fail("rename into place");
  file.keep();
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

std::string sha256_hex_of_file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw data_error("cannot read '{}': {}", path.string(), std::strerror(errno));
  Sha256 hash;
  std::string buffer(1 << 20, '\0');
  while (stream.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || stream.gcount() > 0) {
    hash.update({buffer.data(), static_cast<std::size_t>(stream.gcount())});
  }
  return hash.hex();
}

}  // namespace mulligan
