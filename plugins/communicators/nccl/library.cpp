#include "plugins/communicators/nccl/library.h"

#include <stdexcept>

#include "plugins/common/nvidia_wheels.h"

namespace mulligan::nccl_ranks {
namespace {

// The given file, or what the dynamic linker finds, or the active Python's wheel.
std::vector<std::string> files(const std::string& path) {
  if (!path.empty()) return {path};
  std::vector<std::string> found{"libnccl.so.2"};
  for (const std::string& folder : plugins::wheel_folders("nccl")) found.push_back(folder + "/libnccl.so.2");
  return found;
}

constexpr int kOldest = 21800;  // non-blocking communicators that can be finalized

}  // namespace

Nccl::Nccl(const std::string& path)
    : library("NCCL", files(path),
              path.empty()
                  ? "install NCCL 2.18 or newer (pip install nvidia-nccl-cu12), or set communicator.library"
                  : "correct communicator.library") {
  int version = 0;
  check(GetVersion(&version), "GetVersion");
  if (version < kOldest) {
    throw std::runtime_error("NCCL " + std::to_string(version / 10000) + "." +
                             std::to_string(version / 100 % 100) + " was found; install NCCL 2.18 or newer");
  }
}

void Nccl::check(int result, const char* call) const {
  if (result == kSuccess || result == kInProgress) return;
  const char* last = GetLastError(nullptr);
  const std::string said = last ? last : "";
  throw std::runtime_error(std::string("nccl") + call + " failed: " + GetErrorString(result) +
                           (said.empty() ? "" : " (" + said.substr(0, said.find('\n')) + ")"));
}

}  // namespace mulligan::nccl_ranks
