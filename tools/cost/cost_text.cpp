#include "tools/cost/cost_text.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "framework/core/printable.h"

namespace mulligan {
namespace {

std::string rate_text(double amount, double seconds, double unit) {
  return amount > 0 ? fmt::format("{:.1f}", amount / seconds / unit) : "-";
}

}  // namespace

std::string shape_text(const Graph& graph, const Call& call) {
  std::string text;
  for (const Value argument : call.arguments) {
    if (!argument) continue;
    const TensorType& type = graph.type(argument);
    text += text.empty() ? "[" : " [";
    for (int axis = 0; axis < type.rank; ++axis)
      text += fmt::format("{}{}", axis ? ", " : "", type.dims[axis]);
    text += "]";
  }
  return text;
}

CostRow& CostRow::operator+=(const CostRow& other) {
  calls += other.calls;
  launches += other.launches;
  flops += other.flops;
  bytes_read += other.bytes_read;
  bytes_written += other.bytes_written;
  seconds += other.seconds;
  return *this;
}

std::vector<CostRow> summed(const std::vector<CostRow>& rows) {
  std::map<std::tuple<std::string, std::string, std::string, std::string>, CostRow> sums;
  for (const CostRow& row : rows) {
    CostRow& sum = sums.try_emplace({row.program, row.kernel, row.shapes, row.category},
                                    CostRow{row.program, row.kernel, row.shapes, row.category})
                       .first->second;
    sum += row;
  }
  std::vector<CostRow> longest_first;
  for (auto& [key, sum] : sums) longest_first.push_back(std::move(sum));
  std::ranges::stable_sort(longest_first, std::greater<>(), &CostRow::seconds);
  return longest_first;
}

void add_cost_table(TextLines& text, const char* heading, const std::vector<CostRow>& rows,
                    double all_seconds, bool of_gpu) {
  const double unit = of_gpu ? 1e12 : 1e9;
  const auto launches = [&](const std::string& word) { return of_gpu ? fmt::format(" {:>8}", word) : ""; };
  text.line("{:<44} {:>6}{} {:>10} {:>7} {:>9} {:>8}", heading, "calls", launches("launches"), "ms", "share",
            of_gpu ? "TFLOP/s" : "GFLOP/s", of_gpu ? "TB/s" : "GB/s");
  for (const CostRow& row : rows) {
    const std::string name = row.kernel.empty() ? row.category
                                                : row.program + ": " + row.kernel +
                                                      (row.category == "head matmuls" ? " (head)" : "");
    text.line("{:<44} {:>6}{} {:>10.3f} {:>6.1f}% {:>9} {:>8}{}{}", name, row.calls,
              launches(std::to_string(row.launches)), 1e3 * row.seconds, 100 * row.seconds / all_seconds,
              rate_text(row.flops, row.seconds, unit),
              rate_text(row.bytes_read + row.bytes_written, row.seconds, unit),
              row.shapes.empty() ? "" : "  ", row.shapes);
  }
}

DeviceBytes::DeviceBytes(const std::map<std::string, std::int64_t>& tensor_bytes, std::int64_t arena_bytes,
                         std::optional<std::int64_t> workspace)
    : rows(memory_by_category(tensor_bytes)), workspace_bytes(workspace) {
  rows.push_back({"arena (activations, shared by all programs)", arena_bytes});
  if (workspace) rows.push_back({"workspace of the backend's kernels", *workspace});
  for (const MemoryRow& row : rows) bytes += row.bytes;
}

std::string memory_line(const MemoryRow& row) {
  return fmt::format("  {:<44} {:>18} bytes", row.what, grouped(row.bytes));
}

void add_memory(TextLines& text, const DeviceBytes& plan, const char* sum, const std::string& why_not) {
  for (const MemoryRow& row : plan.rows) text.line("{}", memory_line(row));
  text.line("{} = {:.2f} GiB", memory_line({sum, plan.bytes}), static_cast<double>(plan.bytes) / (1 << 30));
  if (!plan.workspace_bytes) {
    text.line("  in addition, workspace of the backend's kernels: not known{}",
              why_not.empty() ? "" : fmt::format(" ({})", why_not));
  }
}

std::string token_rate(std::int64_t tokens, double seconds) {
  return grouped(static_cast<std::int64_t>(static_cast<double>(tokens) / seconds));
}

}  // namespace mulligan
