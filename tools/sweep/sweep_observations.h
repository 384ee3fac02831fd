// The values of a finished sweep, read back from its folder for statistics.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tools/stats/observations.h"

namespace mulligan {

// Whether `folder` is a sweep's: it holds sweep.json.
bool is_sweep_folder(const std::filesystem::path& folder);

struct SweepObservations {
  stats::Observations all;  // with the factor "row"
  std::string baseline;     // a row
};

// Of each row and seed the final score: with test-time training where there is one. `metric`: val_bpb,
// val_loss_nats, or "" for the sweep's own. Throws config_error for another metric and data_error where
// sweep.json is not as this program writes it or has no such score.
SweepObservations observe_sweep(const std::filesystem::path& folder, const std::string& metric);

// The run directories below a sweep's folder, row by row in the order of their names.
std::vector<std::string> runs_of_sweep(const std::filesystem::path& folder);

}  // namespace mulligan
