// How costs are printed: mulligan profile, its prediction and train --dry-run share these words and tables.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/graph/graph.h"

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

// A row of a table of costs.
struct CostLine {
  std::string name;
  std::int64_t calls = 0;
  std::optional<std::int64_t> launches;  // the table has a column of them where its first row has
  double seconds = 0, flops = 0, bytes = 0;
  std::string shapes;
};

// Of the rates in a table: billions a second for CPUs, thousands of billions for GPUs.
struct RateUnit {
  double amount;
  const char* flops;
  const char* bytes;
};
constexpr RateUnit giga_rates{1e9, "GFLOP/s", "GB/s"};
constexpr RateUnit tera_rates{1e12, "TFLOP/s", "TB/s"};

// Names, calls, milliseconds with their share of `all_seconds`, and rates, under `heading` as the names' heading.
void add_cost_table(TextLines& text, const char* heading, const std::vector<CostLine>& lines,
                    double all_seconds, const RateUnit& unit);

// "12,345": tokens a second of a step.
std::string token_rate(std::int64_t tokens, double seconds);

}  // namespace mulligan
