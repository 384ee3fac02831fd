// The manual page.
#pragma once

#include <string>
#include <vector>

#include "launch/command_outline.h"

namespace mulligan {

// mulligan(1) in the man macros. `version` stands at the foot of its pages; `about` is the program's
// description and `codes` its exit codes, each "NUMBER WHAT".
std::string manual_page(const std::vector<CommandOutline>& commands, const std::string& version,
                        const std::vector<std::string>& codes);

}  // namespace mulligan
