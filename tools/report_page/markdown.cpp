#include "tools/report_page/markdown.h"

#include <optional>

#include "framework/core/error.h"

namespace mulligan::report {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\v\f";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(trimmed(text.substr(0, end)));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

bool begins_with_pipe(std::string_view line) {
  return line.starts_with('|');
}

// Of a line that begins with a pipe.
std::vector<std::string> cells_of(std::string_view line) {
  line.remove_prefix(1);
  std::vector<std::string> cells;
  std::string cell;
  const auto end_cell = [&] {
    cells.emplace_back(trimmed(cell));
    cell.clear();
  };
  bool open = false;  // the last cell has had no pipe behind it
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool escape = line[i] == '\\' && i + 1 < line.size() && (line[i + 1] == '|' || line[i + 1] == '\\');
    open = escape || line[i] != '|';
    if (!open) {
      end_cell();
    } else {
      cell += escape ? line[++i] : line[i];
    }
  }
  if (open || cells.empty()) end_cell();
  return cells;
}

std::optional<Alignment> alignment_of(std::string_view cell) {
  const bool left = cell.starts_with(':');
  if (left) cell.remove_prefix(1);
  const bool right = cell.ends_with(':');
  if (right) cell.remove_suffix(1);
  if (cell.empty() || cell.find_first_not_of('-') != std::string_view::npos) return std::nullopt;
  if (!right) return Alignment::left;
  return left ? Alignment::centre : Alignment::right;
}

// The columns that a line such as "|---|---:|" says; nothing where it is another.
std::optional<std::vector<Alignment>> columns_of(std::string_view line) {
  if (!begins_with_pipe(line)) return std::nullopt;
  std::vector<Alignment> columns;
  for (const std::string& cell : cells_of(line)) {
    const std::optional<Alignment> column = alignment_of(cell);
    if (!column) return std::nullopt;
    columns.push_back(*column);
  }
  return columns;
}

}  // namespace

std::vector<MarkdownPiece> read_markdown(std::string_view text, const std::string& source) {
  const std::vector<std::string_view> lines = lines_of(text);
  std::vector<MarkdownPiece> pieces;
  std::string paragraph;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) pieces.emplace_back(std::move(paragraph));
    paragraph.clear();
  };
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto columns = i + 1 < lines.size() ? columns_of(lines[i + 1]) : std::nullopt;
    MarkdownTable table;
    if (columns && begins_with_pipe(lines[i])) table.head = cells_of(lines[i]);
    if (!columns || table.head.size() != columns->size()) {
      if (lines[i].empty()) {
        end_paragraph();
      } else {
        paragraph.append(paragraph.empty() ? "" : " ").append(lines[i]);
      }
      continue;
    }
    end_paragraph();
    table.columns = *columns;
    for (i += 2; i < lines.size() && begins_with_pipe(lines[i]); ++i) {
      table.rows.push_back(cells_of(lines[i]));
      if (table.rows.back().size() > columns->size()) {
        throw data_error("{}:{}: a row of {} cells below a head of {}; write a pipe inside of a cell as \\|.",
                         source, i + 1, table.rows.back().size(), columns->size());
      }
    }
    --i;
    pieces.emplace_back(std::move(table));
  }
  end_paragraph();
  return pieces;
}

}  // namespace mulligan::report
