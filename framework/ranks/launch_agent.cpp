#include "framework/ranks/launch_agent.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

#include "framework/core/temporary_path.h"

namespace mulligan {
namespace {

// Files below /proc have no size, so they are read to their end.
std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Process {
  long parent = 0;
  std::string start;  // in ticks since the machine was started
};

std::optional<Process> look_at(long process) {
  const std::string stat = contents(fmt::format("/proc/{}/stat", process));
  const std::size_t name_end = stat.rfind(')');  // a name may hold spaces and brackets
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(stat.substr(name_end + 1));
  std::string state, field;
  Process found;
  fields >> state >> found.parent;
  constexpr int parent_field = 4, start_field = 22;
  for (int i = parent_field; i < start_field; ++i) fields >> field;
  found.start = field;
  return fields ? std::optional(found) : std::nullopt;
}

bool has_variable(long process, const std::string& name) {
  const std::string environment = '\0' + contents(fmt::format("/proc/{}/environ", process));
  return environment.find('\0' + name + '=') != std::string::npos;
}

}  // namespace

long parent_of(long process) {
  const auto found = look_at(process);
  return found ? found->parent : 0;
}

std::string launch_agent(const std::string& sign) {
  auto own = look_at(getpid());
  for (long process = own ? own->parent : 0; process > 0; process = own->parent) {
    own = look_at(process);
    if (!own) return "";
    if (has_variable(process, sign)) continue;
    std::string boot = contents("/proc/sys/kernel/random/boot_id");
    boot.resize(std::min(boot.find('\n'), boot.size()));
    return fmt::format("{} {} {} {}", host_name(), boot, process, own->start);
  }
  return "";
}

}  // namespace mulligan
