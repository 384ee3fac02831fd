#include "framework/report/machine.h"

#include <fstream>
#include <string_view>

#include "mulligan_build_commit.h"

namespace mulligan {
namespace {

// The rest of the first line of `file` that starts with `label`, after the colon and blanks.
std::string labelled_value(const char* file, std::string_view label) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with(label)) continue;
    const std::size_t value = line.find_first_not_of(" \t", line.find(':') + 1);
    return value == std::string::npos ? "" : line.substr(value);
  }
  return "";
}

}  // namespace

std::int64_t peak_memory_bytes() {
  const std::string kibibytes = labelled_value("/proc/self/status", "VmHWM");
  return kibibytes.empty() ? 0 : std::stoll(kibibytes) * 1024;
}

std::string processor_name() {
  const std::string name = labelled_value("/proc/cpuinfo", "model name");
  return name.empty() ? "unknown" : name;
}

std::string build_commit() {
  return MULLIGAN_BUILD_COMMIT;
}

}  // namespace mulligan
