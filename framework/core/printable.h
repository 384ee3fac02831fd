// Text of others (file names, fields of files) for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace mulligan {

enum class LineBreaks { escaped, kept };

// `text` with control characters as \xNN (line breaks as \n), so that a name or a field of a file can neither
// steer the terminal nor pretend to be a line of the program's own. Tabs stay. `kept`: so do line breaks, for
// texts of several lines.
std::string printable(std::string_view text, LineBreaks breaks = LineBreaks::escaped);

}  // namespace mulligan
