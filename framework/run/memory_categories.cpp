#include "framework/run/memory_categories.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "framework/core/grouped.h"

namespace mulligan {
namespace {

// By prefix of the name; the last one takes the rest.
const std::vector<std::pair<std::string_view, std::string_view>> categories = {
    {"master/", "master weights"},
    {"compute/", "compute copies"},
    {"gradient/", "gradients"},
    {"optimizer/", "optimiser state"},
    {"carried", "gradients as they travel between ranks"},
    {"ema", "averaged weights"},
    {"evaluation", "evaluation weights"},
    {"ttt/batch", "adapters and their optimiser's state"},
    {"ttt/base/optimizer", "optimiser state of the base model"},
    {"", "inputs, tables and metrics"},
};

}  // namespace

std::string memory_line(const MemoryRow& row) {
  return fmt::format("  {:<44} {:>18} bytes", row.what, grouped(row.bytes));
}

double gibibytes(std::int64_t bytes) {
  return static_cast<double>(bytes) / (1 << 30);
}

std::vector<MemoryRow> memory_by_category(const std::map<std::string, std::int64_t>& tensor_bytes) {
  std::map<std::string_view, std::int64_t> by_category;
  for (const auto& [name, bytes] : tensor_bytes) {
    const auto category = std::ranges::find_if(
        categories, [&name = name](const auto& entry) { return name.starts_with(entry.first); });
    by_category[category->second] += bytes;
  }
  std::vector<MemoryRow> rows;
  for (const auto& [prefix, what] : categories) {
    if (by_category.contains(what)) rows.push_back({std::string(what), by_category[what]});
  }
  return rows;
}

}  // namespace mulligan
