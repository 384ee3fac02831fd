// A sentence for a crash: which plugin's call or kernel was running.
#pragma once

#include <string>

namespace mulligan {

// From now on SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT write one sentence to stderr that names what was
// running (plugin_call.h), and then end the process as they would have without. The sentence is written on
// the alternate stack of the thread (core/alternate_stack.h), so that neither a spent stack nor code that
// uses the stack register for data keeps it from being written. Called once, by main().
void report_crashes();

// Libraries are loaded for good, and their last code runs when the process ends, where no note tells of it:
// from note_process_end() on, such a crash is said to be of one of the libraries noted.
void note_loaded_library(const std::string& path);
void note_process_end();

}  // namespace mulligan
