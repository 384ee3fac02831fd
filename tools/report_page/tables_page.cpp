#include "tools/report_page/tables_page.h"

#include <fmt/format.h>
#include <algorithm>

#include "framework/core/error.h"
#include "framework/core/file.h"

namespace mulligan::report {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\v\f";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

// Of a line that begins with a pipe; of another none.
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells;
  if (!line.starts_with('|')) return cells;
  std::string cell;
  bool open = true;  // the last cell has no pipe after it
  for (std::size_t i = 1; i < line.size(); ++i) {
    const bool escape = line[i] == '\\' && i + 1 < line.size() && (line[i + 1] == '|' || line[i + 1] == '\\');
    open = escape || line[i] != '|';
    if (open) {
      cell += escape ? line[++i] : line[i];
    } else {
      cells.emplace_back(trimmed(cell));
      cell.clear();
    }
  }
  if (open) cells.emplace_back(trimmed(cell));
  return cells;
}

// The letters of Table::columns that a line such as "|---|---:|" says; "" where it is another.
std::string columns_of(std::string_view line) {
  std::string columns;
  for (std::string_view cell : cells_of(line)) {
    const bool left = cell.starts_with(':');
    cell.remove_prefix(left ? 1 : 0);
    const bool right = cell.ends_with(':');
    cell.remove_suffix(right ? 1 : 0);
    if (cell.empty() || cell.find_first_not_of('-') != std::string_view::npos) return {};
    columns += !right ? 'l' : left ? 'c' : 'r';
  }
  return columns;
}

}  // namespace

std::vector<MarkdownPiece> read_markdown(std::string_view text, const std::string& source) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(trimmed(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  std::vector<MarkdownPiece> pieces;
  bool paragraph = false;  // the last piece is one that goes on
  for (std::size_t i = 0; i < lines.size(); ++i) {
    Table table{{}, i + 1 < lines.size() ? columns_of(lines[i + 1]) : ""};
    const std::size_t width = table.columns.size();
    if (width > 0) table.head = cells_of(lines[i]);
    const bool of_table = width > 0 && table.head.size() == width;
    if (of_table) {
      for (i += 2; i < lines.size() && lines[i].starts_with('|'); ++i) {
        table.rows.push_back(cells_of(lines[i]));
        if (table.rows.back().size() > width) {
          throw data_error(
              "{}:{}: a row of {} cells below a head of {}; write a pipe inside of a cell as \\|.", source,
              i + 1, table.rows.back().size(), width);
        }
      }
      --i;
      pieces.emplace_back(std::move(table));
    } else if (paragraph && !lines[i].empty()) {
      std::get<std::string>(pieces.back()).append(" ").append(lines[i]);
    } else if (!lines[i].empty()) {
      pieces.emplace_back(std::string(lines[i]));
    }
    paragraph = !of_table && !lines[i].empty();
  }
  return pieces;
}

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_in(const fs::path& folder) {
  constexpr const char* name = "tables.md";  // the file that an experiment keeps its tables in
  const auto is_there = [](const fs::path& path) {
    std::error_code ignored;  // what cannot be looked at is refused when it is read
    return fs::symlink_status(path, ignored).type() != fs::file_type::not_found;
  };
  if (is_there(folder / name)) return {folder / name};
  std::vector<fs::path> files;
  std::error_code failed;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
    if (is_there(entry->path() / name)) files.push_back(entry->path() / name);
  }
  if (failed)
    throw data_error("'{}' cannot be read: {}; name a folder of tables.", folder.string(), failed.message());
  if (files.empty()) {
    throw data_error(
        "'{0}' holds neither a {1} nor folders with one; run what makes it, such as configs/numerics/run.",
        folder.string(), name);
  }
  std::ranges::sort(files);
  return files;
}

// The pieces of a file; it must have a table.
std::string html_of_file(const fs::path& file) {
  constexpr std::uint64_t largest_file = std::uint64_t{1} << 20;
  std::string html;
  bool any = false;
  for (const MarkdownPiece& piece : read_markdown(read_file(file, largest_file), file.string())) {
    const auto* table = std::get_if<Table>(&piece);
    any = any || table != nullptr;
    html += table ? html_of(*table) : fmt::format("<p>{}</p>\n", escape(std::get<std::string>(piece)));
  }
  if (!any) throw data_error("'{}' holds no Markdown table; make it again, or remove it.", file.string());
  return html;
}

}  // namespace

std::string tables_page(const std::vector<fs::path>& folders) {
  std::string navigation = "<nav>", sections;
  std::size_t count = 0;
  for (const fs::path& named : folders) {
    for (const fs::path& file : files_in(named)) {
      const fs::path folder = fs::absolute(file).lexically_normal().parent_path();
      const std::string name = (folder.has_filename() ? folder.filename() : folder).string();
      const std::string id = fmt::format("tables-{}", ++count);
      navigation += fmt::format("<a href=\"#{}\">{}</a>", id, escape(name));
      sections += section(
          id, name,
          fmt::format("<p class=\"note\"><code>{}</code></p>\n", escape(file.string())) + html_of_file(file));
    }
  }
  return page("Tables", fmt::format("{} experiment{}", count, count == 1 ? "" : "s"),
              navigation + "</nav>\n" + sections);
}

}  // namespace mulligan::report
