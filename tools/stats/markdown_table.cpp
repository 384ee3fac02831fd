#include "tools/stats/markdown_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace mulligan::stats {

std::string Table::text() const {
  std::vector<std::vector<std::string>> cells = {head};
  cells.insert(cells.end(), rows.begin(), rows.end());
  std::vector<std::size_t> widths(head.size());
  for (auto& row : cells) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      std::string escaped;
      for (const char c : row[i]) {
        if (c == '|' || c == '\\') escaped += '\\';
        escaped += c == '\n' || c == '\r' ? ' ' : c;
      }
      row[i] = escaped;
      widths[i] = std::max(widths[i], escaped.size());
    }
  }
  std::string text;
  for (const auto& row : cells) {
    for (std::size_t i = 0; i < widths.size(); ++i) text += fmt::format("| {:<{}} ", row[i], widths[i]);
    text += "|\n";
    if (&row != &cells.front()) continue;
    for (const std::size_t width : widths) text += fmt::format("|{:-<{}}", "", width + 2);
    text += "|\n";
  }
  return text;
}

}  // namespace mulligan::stats
