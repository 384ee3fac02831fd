// Words of a shell's command line, for commands that are printed to be pasted.
#pragma once

#include <string>
#include <string_view>

namespace mulligan {

// `argument` as one word, in quotes where it needs them.
std::string shell_quoted(std::string_view argument);

// The path of a file as one word, which is no option.
inline std::string shell_path(const std::string& path) {
  return shell_quoted(path.starts_with('-') ? "./" + path : path);
}

}  // namespace mulligan
