#include "tools/cost/cost_text.h"

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

void add_cost_table(TextLines& text, const char* heading, const std::vector<CostLine>& lines,
                    double all_seconds, const RateUnit& unit) {
  const bool launched = !lines.empty() && lines.front().launches;
  const auto launches = [&](const std::string& word) { return launched ? fmt::format(" {:>8}", word) : ""; };
  text.line("{:<44} {:>6}{} {:>10} {:>7} {:>9} {:>8}", heading, "calls", launches("launches"), "ms", "share",
            unit.flops, unit.bytes);
  for (const CostLine& line : lines) {
    text.line("{:<44} {:>6}{} {:>10.3f} {:>6.1f}% {:>9} {:>8}{}{}", line.name, line.calls,
              launches(std::to_string(line.launches.value_or(0))), 1e3 * line.seconds,
              100 * line.seconds / all_seconds, rate_text(line.flops, line.seconds, unit.amount),
              rate_text(line.bytes, line.seconds, unit.amount), line.shapes.empty() ? "" : "  ", line.shapes);
  }
}

std::string token_rate(std::int64_t tokens, double seconds) {
  return grouped(static_cast<std::int64_t>(static_cast<double>(tokens) / seconds));
}

}  // namespace mulligan
