// One page of the Markdown tables that experiments have left in their folders.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace mulligan::report {

// The file that an experiment keeps its tables in.
inline constexpr const char* kTablesFile = "tables.md";

// HTML of every FOLDER/tables.md, a section each, which bears the name of its folder; where a folder has no
// such file, of every tables.md of the folders in it, by name. Throws data_error where a folder cannot be read
// or holds none, or where a file is no text of tables (read_markdown), is larger than 1 MiB, or has no table.
std::string tables_page(const std::vector<std::filesystem::path>& folders);

}  // namespace mulligan::report
