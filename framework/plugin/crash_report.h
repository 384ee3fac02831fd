// A sentence for a crash that names the plugin's call or the kernel that was running.
#pragma once

#include <string>

namespace mulligan {

// From now on SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT write one sentence to stderr that names what was running
// (plugin_call.h). Then they end the process as before. The handler runs on the thread's alternate stack
// (core/alternate_stack.h), so it works with an overflowed stack and with code that uses the stack register for data. main()
// calls this once.
void report_crashes();

// Libraries are loaded for good, and their last code runs when the process ends, without a note. After note_process_end(),
// a crash is attributed to one of the noted libraries.
void note_loaded_library(const std::string& path);
void note_process_end();

}  // namespace mulligan
