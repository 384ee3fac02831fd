#include "launch/launcher/core_shares.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

namespace mulligan {
namespace {

namespace fs = std::filesystem;

fs::path system_folder(int processor) {
  return fs::path("/sys/devices/system/cpu") / fmt::format("cpu{}", processor);
}

// A name that the hardware threads of one core share; their list.
std::string core_name(int processor) {
  std::ifstream file(system_folder(processor) / "topology/thread_siblings_list");
  std::string siblings;
  std::getline(file, siblings);
  return siblings.empty() ? fmt::format("{}", processor) : siblings;
}

// The folder of a processor has a link "node1" to its memory node.
int memory_node(int processor) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(system_folder(processor), ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("node") && name.find_first_not_of("0123456789", 4) == std::string::npos &&
        name.size() > 4) {
      return std::atoi(name.c_str() + 4);
    }
  }
  return 0;
}

// Part `part` of `parts` of the cores first..last-1; at least one core.
void take(const std::vector<PhysicalCore>& cores, std::size_t first, std::size_t last, std::size_t part,
          std::size_t parts, std::vector<int>& share) {
  const std::size_t count = last - first;
  const std::size_t begin = first + part * count / parts;
  const std::size_t end = std::max(begin + 1, first + (part + 1) * count / parts);
  for (std::size_t i = begin; i < end; ++i) {
    share.insert(share.end(), cores[i].processors.begin(), cores[i].processors.end());
  }
}

}  // namespace

std::vector<PhysicalCore> allowed_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  std::map<std::string, PhysicalCore> found;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
      if (!CPU_ISSET(processor, &allowed)) continue;
      PhysicalCore& core = found[core_name(processor)];
      core.memory_node = memory_node(processor);
      core.processors.push_back(processor);
    }
  }
  std::vector<PhysicalCore> cores;
  for (auto& [name, core] : found) cores.push_back(std::move(core));
  std::ranges::sort(cores, {}, [](const PhysicalCore& core) {
    return std::pair(core.memory_node, core.processors.front());
  });
  return cores;
}

std::vector<std::vector<int>> core_shares(const std::vector<PhysicalCore>& cores, int ranks) {
  std::vector<std::vector<int>> shares(static_cast<std::size_t>(ranks));
  if (cores.empty()) return shares;
  std::vector<std::size_t> starts;  // of the memory nodes, in `cores`
  for (std::size_t i = 0; i < cores.size(); ++i) {
    if (i == 0 || cores[i].memory_node != cores[i - 1].memory_node) starts.push_back(i);
  }
  // Ranks that do not divide among the nodes divide among all cores.
  if (shares.size() % starts.size() != 0) starts = {0};
  const std::size_t ranks_of_node = shares.size() / starts.size();
  for (std::size_t rank = 0; rank < shares.size(); ++rank) {
    const std::size_t node = rank / ranks_of_node;
    const std::size_t last = node + 1 < starts.size() ? starts[node + 1] : cores.size();
    take(cores, starts[node], last, rank % ranks_of_node, ranks_of_node, shares[rank]);
  }
  return shares;
}

std::string processor_list(std::vector<int> processors) {
  std::ranges::sort(processors);
  std::string text;
  for (std::size_t i = 0; i < processors.size();) {
    std::size_t last = i;
    while (last + 1 < processors.size() && processors[last + 1] == processors[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", processors[i]);
    if (last > i) text += fmt::format("-{}", processors[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace mulligan
