#include "tools/stats/markdown_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace mulligan::stats {
namespace {

std::string escaped(const std::string& cell) {
  std::string text;
  for (const char c : cell) {
    if (c == '|' || c == '\\') text += '\\';
    text += c == '\n' || c == '\r' ? ' ' : c;
  }
  return text;
}

}  // namespace

void MarkdownTable::add(std::vector<std::string> row) {
  std::ranges::transform(row, row.begin(), escaped);
  rows_.push_back(std::move(row));
}

std::string MarkdownTable::text() const {
  std::vector<std::size_t> widths(rows_.front().size());
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    for (std::size_t i = 0; i < widths.size(); ++i) text += fmt::format("| {:<{}} ", rows_[r][i], widths[i]);
    text += "|\n";
    if (r > 0) continue;
    for (const std::size_t width : widths) text += fmt::format("|{:-<{}}", "", width + 2);
    text += "|\n";
  }
  return text;
}

}  // namespace mulligan::stats
