// What a probe found, for people and as JSON.
#pragma once

#include <string>
#include <vector>

#include "framework/probe/measure.h"

namespace mulligan::probe {

// One row for each batch size of each measurement: held against the first batch size of the same measurement
// (what the batch's size does), and against the first measurement at the same batch size (what precision or
// threads do). Ends with a newline.
std::string probe_text(const std::vector<Measurement>& measurements, const ProbeOptions& options);
std::string probe_json(const std::vector<Measurement>& measurements, const ProbeOptions& options,
                       const std::string& weights);

}  // namespace mulligan::probe
