// The compressed lists of Slurm: names of nodes and tasks per node.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mulligan {

// "n[01-03,7],m5" -> n01 n02 n03 n7 m5. At most 65,536 names. Throws config_error naming `variable` where the
// list is malformed.
std::vector<std::string> expand_node_list(std::string_view list, std::string_view variable);

// "2(x3),1" -> 2 2 2 1. Throws as above.
std::vector<int> expand_task_counts(std::string_view list, std::string_view variable);

}  // namespace mulligan
