// How costs are printed: mulligan profile, its prediction and train --dry-run share these words and tables.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/graph/graph.h"
#include "framework/run/device_plan.h"

namespace mulligan {

// Text made line by line.
class TextLines {
 public:
  template <typename... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Arguments>(arguments)...);
    text_.push_back('\n');
  }
  std::string take() const { return fmt::to_string(text_); }

 private:
  fmt::memory_buffer text_;
};

// "[2048, 512] [2048, 512] [2048, 2048]", of the arguments that are not absent.
std::string shape_text(const Graph& graph, const Call& call);

// What calls cost: those of one kernel in one program, or a sum.
struct CostRow {
  std::string program;  // "micro step", "update", ...; "between programs" for memsets, copies and uploads
  std::string kernel;
  std::string shapes;  // "" unless rows are told apart by them
  std::string category;
  std::int64_t calls = 0;
  std::int64_t launches = 0;  // with the kernels that a library launches
  double flops = 0;           // of matmuls and attention (cost.h)
  double bytes_read = 0, bytes_written = 0, seconds = 0;
  // Adds the figures.
  CostRow& operator+=(const CostRow& other);
};

// Sums rows of the same program, kernel, shapes and category. Longest first.
std::vector<CostRow> summed(const std::vector<CostRow>& rows);

// Adds names, calls, milliseconds with their share of `all_seconds`, and rates in billions per second. With `of_gpu`, rates are in
// trillions per second, and a column has the launches. A row without a kernel has the name of its category.
void add_cost_table(TextLines& text, const char* heading, const std::vector<CostRow>& rows,
                    double all_seconds, bool of_gpu);

// Bytes of one rank on its device: tensors by category, the arena that all programs share, and, where the configured
// backend can be started here, the workspace of its kernels. The sum is what Backend::peak_allocated_bytes() comes to.
struct DeviceBytes {
  DeviceBytes(const std::map<std::string, std::int64_t>& tensor_bytes, std::int64_t arena_bytes,
              std::optional<std::int64_t> workspace);
  std::vector<MemoryRow> rows;
  std::int64_t bytes = 0;
  std::optional<std::int64_t> workspace_bytes;
};
// "  gradients                     1,234 bytes".
std::string memory_line(const MemoryRow& row);
// A line for each row and one for the sum, which is called `sum`; where the workspace is not known, a line with `why_not`.
void add_memory(TextLines& text, const DeviceBytes& plan, const char* sum, const std::string& why_not = {});

// "12,345": tokens a second of a step.
std::string token_rate(std::int64_t tokens, double seconds);

}  // namespace mulligan
