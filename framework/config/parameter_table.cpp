#include "framework/config/parameter_table.h"

#include <fnmatch.h>

#include "framework/core/error.h"

namespace mulligan {
namespace {

bool matches(const ParameterRow& row, const std::string& name) {
  return fnmatch(row.match.c_str(), name.c_str(), 0) == 0;
}

// A row that takes nothing is a typing error or a row in the wrong place; the sentence says which.
[[noreturn]] void refuse_idle_row(const ParameterRow& row, std::span<const std::string> names,
                                  std::span<const size_t> taken_by, std::span<const ParameterRow> rows) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (!matches(row, names[i])) continue;
    throw config_error(
        "{}: the parameter row with match = \"{}\" takes no parameter, since the row \"{}\" ({}) before it "
        "takes '{}'; move it up or remove it.",
        row.origin.text(), row.match, rows[taken_by[i]].match, rows[taken_by[i]].origin.text(), names[i]);
  }
  throw config_error(
      "{}: the parameter row with match = \"{}\" matches no parameter; 'mulligan train --dry-run' "
      "lists their names.",
      row.origin.text(), row.match);
}

}  // namespace

std::vector<size_t> resolve_parameter_table(std::span<const std::string> names,
                                            std::span<const ParameterRow> rows) {
  std::vector<size_t> taken_by;
  std::vector<bool> busy(rows.size(), false);
  for (const std::string& name : names) {
    size_t row = 0;
    while (row < rows.size() && !matches(rows[row], name)) ++row;
    config_error_if(
        row == rows.size(),
        "{}: the parameter '{}' is matched by no row of [[parameters]]; add a row for it, or a last row "
        "with match = \"*\".",
        rows.empty() ? "[[parameters]]" : rows.back().origin.text(), name);
    busy[row] = true;
    taken_by.push_back(row);
  }
  for (size_t row = 0; row < rows.size(); ++row) {
    if (!busy[row]) refuse_idle_row(rows[row], names, taken_by, rows);
  }
  return taken_by;
}

}  // namespace mulligan
