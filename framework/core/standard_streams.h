// Standard input, output and error of the process.
#pragma once

#include <string>

namespace mulligan {

// Opens /dev/null in place of each of the three that the process was started without: otherwise the first
// files that it opens would get their numbers, and lines for people would go into them. To be called before
// any file is opened.
void open_missing_streams();

// Whether the reader of standard output has closed it (`... | head`).
bool output_has_no_reader();

// Writes out what is buffered for standard output. Empty, or why not everything printed there arrived (a full
// disk, a closed pipe), since the start.
std::string output_failure();

}  // namespace mulligan
