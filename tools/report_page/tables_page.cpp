#include "tools/report_page/tables_page.h"

#include <fmt/format.h>
#include <algorithm>
#include <optional>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tools/report_page/html.h"

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
  bool open = false;  // the last cell has no pipe after it
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
    ReadTable table;
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

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t largest_file = std::uint64_t{1} << 20;

bool is_there(const fs::path& path) {
  std::error_code ignored;  // what cannot be looked at is refused when it is read
  return fs::symlink_status(path, ignored).type() != fs::file_type::not_found;
}

std::vector<fs::path> files_in(const fs::path& folder) {
  if (is_there(folder / kTablesFile)) return {folder / kTablesFile};
  std::vector<fs::path> files;
  std::error_code failed;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
    if (is_there(entry->path() / kTablesFile)) files.push_back(entry->path() / kTablesFile);
  }
  if (failed)
    throw data_error("'{}' cannot be read: {}; name a folder of tables.", folder.string(), failed.message());
  if (files.empty()) {
    throw data_error(
        "'{0}' holds neither a {1} nor folders with one; run what makes it, such as configs/numerics/run.",
        folder.string(), kTablesFile);
  }
  std::ranges::sort(files);
  return files;
}

std::string markdown_html(const ReadTable& markdown) {
  Table table{markdown.head, {}};
  for (const std::vector<std::string>& texts : markdown.rows) {
    std::vector<Cell>& row = table.rows.emplace_back();
    for (std::size_t i = 0; i < texts.size(); ++i)
      row.push_back(
          {texts[i], markdown.columns[i] == Alignment::right, markdown.columns[i] == Alignment::centre});
  }
  return html_of(table);
}

// The pieces of a file; it must have a table.
std::string html_of_file(const fs::path& file) {
  std::string html;
  bool any = false;
  for (const MarkdownPiece& piece : read_markdown(read_file(file, largest_file), file.string())) {
    const auto* found = std::get_if<ReadTable>(&piece);
    any = any || found != nullptr;
    html += found != nullptr ? markdown_html(*found)
                             : fmt::format("<p>{}</p>\n", escape(std::get<std::string>(piece)));
  }
  if (!any) {
    throw data_error("'{}' holds no Markdown table; make it again, or remove it.", file.string());
  }
  return html;
}

}  // namespace

std::string tables_page(const std::vector<fs::path>& folders) {
  std::vector<fs::path> files;
  for (const fs::path& folder : folders) {
    const std::vector<fs::path> found = files_in(folder);
    files.insert(files.end(), found.begin(), found.end());
  }
  std::string navigation = "<nav>", sections;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const fs::path folder = fs::absolute(files[i]).lexically_normal().parent_path();
    const std::string name = (folder.has_filename() ? folder.filename() : folder).string();
    navigation += fmt::format("<a href=\"#tables-{}\">{}</a>", i + 1, escape(name));
    sections += section(fmt::format("tables-{}", i + 1), name,
                        fmt::format("<p class=\"note\"><code>{}</code></p>\n", escape(files[i].string())) +
                            html_of_file(files[i]));
  }
  return page("Tables", fmt::format("{} experiment{}", files.size(), files.size() == 1 ? "" : "s"),
              navigation + "</nav>\n" + sections);
}

}  // namespace mulligan::report
