// README.md of a submission.
#pragma once

#include <string>

#include "tools/record/submission.h"

namespace mulligan::record {

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
