// What the system refuses, mostly for want of memory or threads, in sentences.
#pragma once

#include <exception>
#include <optional>
#include <string>

namespace mulligan {

// A sentence for std::bad_alloc and for a std::system_error such as std::thread throws; else nothing.
std::optional<std::string> exhaustion_sentence(const std::exception_ptr& failure);

// From now on such an exception that leaves a thread, as one of a library's may, ends the process with that
// sentence, exit code 1 and without what lies at TemporaryPaths. Any other one aborts as before.
// Called once, by main().
void report_exhaustion();

}  // namespace mulligan
