// One page of the Markdown tables that experiments have left in their folders.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tools/report_page/html.h"

namespace mulligan::report {

// A paragraph is its lines, joined by blanks.
using MarkdownPiece = std::variant<std::string, Table>;

// What `text` holds in its order: tables and paragraphs, as stats/markdown_table.h and the experiments print them. The
// dialect is GitHub's, of tables alone (https://github.github.com/gfm/#tables-extension-):
// - A table is a line of cells that begins with a pipe, below it one of as many cells such as ---, :--, --:
//   or :-:, and every line after them that begins with a pipe. The last pipe of a line may be missing.
// - In a cell \| is a pipe and \\ a backslash; all else stands for itself. Blanks around a cell do not
//   count. A row may have fewer cells than the head: the missing ones are empty.
// - Every other line belongs to a paragraph; empty lines separate them.
// Throws data_error that names `source` and the line where a row has more cells than its head, which GitHub drops without a word.
std::vector<MarkdownPiece> read_markdown(std::string_view text, const std::string& source);

// HTML of every FOLDER/tables.md, a section each, which bears the name of its folder; where a folder has no
// such file, of every tables.md of the folders in it, by name. Throws data_error where a folder cannot be read
// or holds none, or where a file is not text of tables (read_markdown), is larger than 1 MiB, or has no table.
std::string tables_page(const std::vector<std::filesystem::path>& folders);

}  // namespace mulligan::report
