// Checks of the table that a loaded library returns.
#pragma once

#include <mulligan/abi.h>

#include <string>

namespace mulligan {

// Empty when the table is sound; otherwise the reason, reading on from the file's name. Looks at no byte
// beyond the table's own struct_size. `table` may be null.
std::string table_problem(const mlg_plugin_header* table);

}  // namespace mulligan
