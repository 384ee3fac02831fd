// A table. As Markdown it reads as plain text, too; report_page/html.h writes it as HTML.
#pragma once

#include <string>
#include <vector>

namespace mulligan::stats {

struct Table {
  std::vector<std::string> head = {};  // may be empty in HTML
  // In HTML: a letter for each column, l at the left, r a number at the right, c in the middle. The last stands for all further ones.
  std::string columns = {};
  std::vector<std::vector<std::string>> rows = {};  // not yet escaped; none has more cells than the head

  void add(std::vector<std::string> row) { rows.push_back(std::move(row)); }
  // Markdown with left-aligned columns, as wide as their widest cell; rows have as many cells as the head. Pipes and backslashes of a
  // cell are escaped, its line breaks become blanks: report_page/tables_page.h reads the cells back.
  std::string text() const;
};

}  // namespace mulligan::stats
