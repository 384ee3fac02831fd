// What the persistent tensors of a run are for, by their names: the rows of a memory plan.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace mulligan {

struct MemoryRow {
  std::string what;  // "gradients"
  std::int64_t bytes = 0;
};

// "  gradients                     1,234 bytes".
std::string memory_line(const MemoryRow& row);
double gibibytes(std::int64_t bytes);

// The bytes of tensors (by name) added up by category, in a fixed order; empty categories are left out.
std::vector<MemoryRow> memory_by_category(const std::map<std::string, std::int64_t>& tensor_bytes);

}  // namespace mulligan
