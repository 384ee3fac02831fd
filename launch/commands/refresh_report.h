// The report of a run directory, after a command has changed it.
#pragma once

#include <filesystem>

#include "framework/report/console.h"

namespace mulligan {

// Rewrites the run's report.html; does nothing if `run` is empty or holds no run. A failure is a warning on stderr, because the
// work that the report describes is done.
void refresh_report(const std::filesystem::path& run, const ConsoleOptions& console);

}  // namespace mulligan
