// The report of a run directory, after a command has changed it.
#pragma once

#include <filesystem>

#include "framework/report/console.h"

namespace mulligan {

// Writes the run's report.html anew; nothing where `run` is empty or holds no run. That it cannot is a
// warning on stderr: what the report is about was done.
void refresh_report(const std::filesystem::path& run, const ConsoleOptions& console);

}  // namespace mulligan
