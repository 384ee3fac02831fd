#include "plugins/backends/cuda/compile/replace_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace mulligan::cuda {
namespace {

bool write_all(int file, const std::string& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t more = write(file, bytes.data() + done, bytes.size() - done);
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) return false;
    done += static_cast<std::size_t>(more);
  }
  return true;
}

}  // namespace

bool replace_file(const std::string& path, const std::string& bytes) {
  std::string temporary = path + ".XXXXXX";
  const int file = mkstemp(temporary.data());
  if (file < 0) return false;
  bool done = write_all(file, bytes) && fchmod(file, 0644) == 0 && fsync(file) == 0;
  int reason = errno;
  close(file);
  if (done && std::rename(temporary.c_str(), path.c_str()) != 0) {
    done = false;
    reason = errno;
  }
  if (!done) unlink(temporary.c_str());
  errno = reason;
  return done;
}

}  // namespace mulligan::cuda
