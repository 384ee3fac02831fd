// Calibration as a table for people and as JSON (calibration.json of a run directory).
#pragma once

#include <string>
#include <vector>

#include "lab/calibration/items.h"

namespace mulligan::calibration {

// For each set its figures and bins, then its subjects with their counts.
std::string calibration_text(const std::vector<ItemSet>& sets, int bins = default_bins);
// `weights`: what answered.
std::string calibration_json(const std::vector<ItemSet>& sets, const std::string& weights,
                             int bins = default_bins);

}  // namespace mulligan::calibration
