// Which processors each rank of a machine gets.
#pragma once

#include <string>
#include <vector>

namespace mulligan {

struct PhysicalCore {
  int memory_node = 0;          // NUMA node
  std::vector<int> processors;  // its hardware threads that this process may use, ascending
};

// The cores that this process may run on (its affinity), by memory node and first processor. Where the system
// does not tell its topology, each processor counts as a core of node 0.
std::vector<PhysicalCore> allowed_cores();

// One list of processors per rank: whole cores, neighbours, as evenly as they divide. Where the ranks divide
// evenly among the memory nodes, none gets cores of two. With more ranks than cores, ranks share cores.
std::vector<std::vector<int>> core_shares(const std::vector<PhysicalCore>& cores, int ranks);

// "0-3,8"
std::string processor_list(std::vector<int> processors);

}  // namespace mulligan
