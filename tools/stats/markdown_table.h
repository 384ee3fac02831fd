// A table in Markdown that reads as plain text, too.
#pragma once

#include <string>
#include <vector>

namespace mulligan::stats {

// Left-aligned columns, as wide as their widest cell. Pipes and backslashes of a cell are escaped, its line
// breaks become blanks: report_page/tables_page.h reads the cells back.
class MarkdownTable {
 public:
  explicit MarkdownTable(std::vector<std::string> head) : rows_{std::move(head)} {}
  // As many cells as the head has.
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace mulligan::stats
