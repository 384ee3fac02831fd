// The limits on CPU time and memory of this process's control groups, versions 1 and 2.
#pragma once

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

struct ControlGroupLimits {
  double cores = std::numeric_limits<double>::infinity();                       // CPU time per time
  std::uint64_t memory_bytes = std::numeric_limits<std::uint64_t>::max();       // smallest limit
  std::uint64_t free_memory_bytes = std::numeric_limits<std::uint64_t>::max();  // smallest limit less its use
};

namespace control_group {

inline std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The number in the file's first line; `otherwise` if there is none ("max").
inline std::uint64_t number_in(const std::string& path, std::uint64_t otherwise) {
  std::istringstream words(first_line(path));
  std::uint64_t value = 0;
  return words >> value ? value : otherwise;
}

// The value of the line "name value" in memory.stat; `otherwise` if there is none.
inline std::uint64_t statistic(const std::string& path, const std::string& wanted, std::uint64_t otherwise) {
  std::ifstream file(path);
  std::string name;
  for (std::uint64_t value = 0; file >> name >> value;) {
    if (name == wanted) return value;
  }
  return otherwise;
}

inline bool lists(const std::string& words, const std::string& wanted) {
  return ("," + words + ",").find("," + wanted + ",") != std::string::npos;
}

// A mounted hierarchy: `root` is the group that appears at `folder`. mountinfo writes blanks as "\040".
struct Mount {
  std::string root, folder, controllers;
  bool version_2 = false;
};

inline std::string unescaped(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '\\' && i + 3 < text.size();
    plain += escape ? static_cast<char>(std::strtol(text.substr(i + 1, 3).c_str(), nullptr, 8)) : text[i];
    if (escape) i += 3;
  }
  return plain;
}

inline std::vector<Mount> mounts(const std::string& system) {
  std::vector<Mount> found;
  std::ifstream file(system + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word, type, source;
    Mount mount;
    words >> word >> word >> word >> mount.root >> mount.folder;
    while (words >> word && word != "-") {
    }
    words >> type >> source >> mount.controllers;
    mount.version_2 = type == "cgroup2";
    if (!mount.version_2 && type != "cgroup") continue;
    mount.root = unescaped(mount.root);
    mount.folder = system + unescaped(mount.folder);
    found.push_back(std::move(mount));
  }
  return found;
}

// The path of `group` below the mount's folder. It is "" for a group outside of the mount, as in a container; then the
// folder itself is the nearest readable group.
inline std::string folder_below(const Mount& mount, const std::string& group) {
  const std::string root = mount.root == "/" ? "" : mount.root;
  const bool inside = group.starts_with(root) && (group.size() == root.size() || group[root.size()] == '/');
  if (!inside || (group + "/").find("/../") != std::string::npos) return "";
  const std::string rest = group.substr(root.size());
  return rest == "/" ? "" : rest;
}

inline void add_cores(ControlGroupLimits& limits, const std::string& folder, bool version_2) {
  double quota = 0, period = 0;
  std::istringstream words(version_2 ? first_line(folder + "/cpu.max")
                                     : first_line(folder + "/cpu.cfs_quota_us") + " " +
                                           first_line(folder + "/cpu.cfs_period_us"));
  if (words >> quota >> period && quota > 0 && period > 0)
    limits.cores = std::min(limits.cores, quota / period);
}

inline void add_memory(ControlGroupLimits& limits, const std::string& folder, bool version_2) {
  constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();
  const std::string stat = folder + "/memory.stat", prefix = version_2 ? "" : "total_";
  std::uint64_t limit = number_in(folder + (version_2 ? "/memory.max" : "/memory.limit_in_bytes"), none);
  // Above memory.high the system slows the group down and reclaims memory.
  if (version_2) limit = std::min(limit, number_in(folder + "/memory.high", none));
  // Includes the limits of parents, which a container may not show.
  if (!version_2) limit = std::min(limit, statistic(stat, "hierarchical_memory_limit", none));
  if (limit == none) return;
  const std::uint64_t used =
      number_in(folder + (version_2 ? "/memory.current" : "/memory.usage_in_bytes"), 0);
  // The kernel can drop cached files, so they count as free.
  const std::uint64_t cached =
      statistic(stat, prefix + "inactive_file", 0) + statistic(stat, prefix + "active_file", 0);
  const std::uint64_t kept = used - std::min(used, cached);
  limits.memory_bytes = std::min(limits.memory_bytes, limit);
  limits.free_memory_bytes = std::min(limits.free_memory_bytes, limit - std::min(limit, kept));
}

}  // namespace control_group

// The limits of this process's groups and of all mounted groups above them. `system`: a folder in place of /, for tests.
inline ControlGroupLimits control_group_limits(const std::string& system = "") {
  ControlGroupLimits limits;
  const std::vector<control_group::Mount> mounts = control_group::mounts(system);
  std::ifstream file(system + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // "4:cpu,cpuacct:/a/b", version 2: "0::/a/b"
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    for (const control_group::Mount& mount : mounts) {
      if (mount.version_2 != controllers.empty()) continue;
      for (const char* controller : {"cpu", "memory"}) {
        if (!mount.version_2 && !(control_group::lists(controllers, controller) &&
                                  control_group::lists(mount.controllers, controller))) {
          continue;
        }
        const auto add = *controller == 'c' ? control_group::add_cores : control_group::add_memory;
        std::string group = control_group::folder_below(mount, line.substr(second + 1));
        for (; !group.empty(); group.resize(group.rfind('/')))
          add(limits, mount.folder + group, mount.version_2);
        add(limits, mount.folder, mount.version_2);
      }
    }
  }
  return limits;
}

// Number of CPUs that the groups' limits allow, rounded up, at least 1; a large number without a limit.
inline int control_group_cpus(const ControlGroupLimits& limits) {
  constexpr int none = 1 << 20;
  return limits.cores < none ? std::max(1, static_cast<int>(std::ceil(limits.cores))) : none;
}

// Hardware threads that this process may use: by its affinity and its groups.
inline int usable_cpus() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const int allowed_cpus = sched_getaffinity(0, sizeof allowed, &allowed) == 0
                               ? CPU_COUNT(&allowed)
                               : static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, std::min(allowed_cpus, control_group_cpus(control_group_limits())));
}

}  // namespace mulligan::sdk

#pragma GCC visibility pop
