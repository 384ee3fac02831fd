// A run's metrics for other programs.
#pragma once

#include <string>

namespace mulligan {

// Paths; empty: not wanted.
struct MetricsExport {
  std::string tensorboard;  // folder for an event file
  std::string csv;          // table with a row per reported step
};

// Prints the path of each file that it writes, and warns of what the directory's files are doubted for. Throws Error.
void export_metrics(const std::string& run, const MetricsExport& wanted);

}  // namespace mulligan
