// Whether what stands behind a piece of Markdown may be hidden by it.
#pragma once

#include <string_view>

namespace mulligan::record {

// Whether something that began in `before` may go on behind it: a comment, a block of code, an element of HTML,
// or what else a browser leaves out. Readers of Markdown differ, so what opens something counts wherever it stands,
// and what closes it only where every reader takes it for that: behind what it closes, and not in code, an
// attribute, a link or behind a backslash.
bool leaves_something_open(std::string_view before);

}  // namespace mulligan::record
