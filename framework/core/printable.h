// Text and numbers for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mulligan {

enum class LineBreaks { escaped, kept };

// `text`, such as a file name, with control characters as \xNN (line breaks as \n), so that a name or a field of a file can neither
// steer the terminal nor pretend to be a line of the program's own. Tabs stay. `kept`: so do line breaks, for
// texts of several lines.
std::string printable(std::string_view text, LineBreaks breaks = LineBreaks::escaped);

// A sentence as part of a longer one.
std::string without_full_stop(std::string sentence);

std::string grouped(std::int64_t number);  // 16000000 as "16,000,000"

}  // namespace mulligan
