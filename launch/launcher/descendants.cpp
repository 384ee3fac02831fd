#include "launch/launcher/descendants.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "framework/core/error.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

// The parent in /proc/PID/stat: the second word behind the name, which may hold anything but ends with the
// last ")". 0 where the process has gone.
pid_t parent_of(const fs::path& process) {
  std::ifstream file(process / "stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos || name_end + 4 > line.size()) return 0;
  return std::atoi(line.c_str() + name_end + 4);
}

std::vector<pid_t> children() {
  std::vector<pid_t> found;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc", ignored)) {
    const pid_t process = std::atoi(entry.path().filename().c_str());
    if (process > 0 && parent_of(entry.path()) == ::getpid()) found.push_back(process);
  }
  return found;
}

}  // namespace

void adopt_orphans() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
    throw run_error("the system does not let the launcher adopt orphaned processes: {}.",
                    std::strerror(errno));
  }
}

bool kill_descendants() {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (true) {
    // Their children become ours with their end; hence the loop.
    for (const pid_t process : children()) ::kill(process, SIGKILL);
    pid_t ended = 0;
    while ((ended = ::waitpid(-1, nullptr, WNOHANG)) > 0) continue;
    if (ended < 0 && errno == ECHILD) return true;
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace mulligan
