// README.md of a submission.
#pragma once

#include <string>
#include <string_view>

#include "tools/record/submission.h"

namespace mulligan::record {

// Whether what stands behind a piece of Markdown may be hidden by it.

// Whether something that began in `before` may continue after it: a comment, a block of code, an element of
// HTML, or what else a browser leaves out. Readers of Markdown differ, so what opens something counts
// wherever it stands, and what closes it only where every reader takes it for that: behind what it closes,
// and not in code, an attribute, a link or behind a backslash.
bool leaves_something_open(std::string_view before);

// The comment lines around the figures.
inline constexpr const char* figures_begin =
    "<!-- measured: made from submission.json by mulligan record; --verify compares it -->";
inline constexpr const char* figures_end = "<!-- end of measured -->";

// The part that states figures, between two comment lines. It follows from submission.json alone, so that
// `mulligan record --verify` can make it again and compare; all around it is free for people to write in.
std::string readme_figures(const Submission& submission);

// What keeps a reader of `readme` (Markdown) from seeing the figures as they are: they are not there, stand within
// something that began before them (a comment, a block of code, an element of HTML that may hide it), or
// stand there twice. Empty where nothing does.
std::string figures_fault(const std::string& readme, const std::string& figures);

// The whole file.
std::string readme_text(const Submission& submission);

}  // namespace mulligan::record
