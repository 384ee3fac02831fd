// Checks of the table that a loaded library returns.
#pragma once

#include <mulligan/abi.h>

#include <string>

namespace mulligan {

// Empty if the table is sound. Otherwise a reason that continues a sentence which begins with the file's name. Reads no byte
// beyond the table's own struct_size. `table` may be null.
std::string table_problem(const mlg_plugin_header* table);

}  // namespace mulligan
