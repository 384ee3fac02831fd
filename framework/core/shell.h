// Words of a shell's command line, for commands that are printed to be pasted.
#pragma once

#include <string>
#include <string_view>

namespace mulligan {

// `argument` as one word, in quotes where it needs them.
std::string shell_quoted(std::string_view argument);

}  // namespace mulligan
