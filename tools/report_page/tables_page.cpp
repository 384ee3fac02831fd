#include "tools/report_page/tables_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tools/report_page/html.h"
#include "tools/report_page/markdown.h"
#include "tools/report_page/page.h"

namespace mulligan::report {
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

std::string html_of(const MarkdownTable& markdown) {
  const auto cell_of = [&](const std::string& text, std::size_t column) {
    return Cell{text, markdown.columns[column] == Alignment::right,
                markdown.columns[column] == Alignment::centre};
  };
  std::vector<std::vector<Cell>> rows;
  for (const std::vector<std::string>& texts : markdown.rows) {
    std::vector<Cell>& row = rows.emplace_back();
    for (std::size_t i = 0; i < texts.size(); ++i) row.push_back(cell_of(texts[i], i));
  }
  return table(markdown.head, rows);
}

// The pieces of a file; it must have a table.
std::string html_of_file(const fs::path& file) {
  std::string html;
  bool any = false;
  for (const MarkdownPiece& piece : read_markdown(read_file(file, largest_file), file.string())) {
    const auto* found = std::get_if<MarkdownTable>(&piece);
    any = any || found != nullptr;
    html +=
        found != nullptr ? html_of(*found) : fmt::format("<p>{}</p>\n", escape(std::get<std::string>(piece)));
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
