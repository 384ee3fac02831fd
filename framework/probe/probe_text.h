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
// The same of several runs, with at least one measurement each and the same ones: a Markdown table with mean,
// standard deviation and n. Flips count per thousand tokens, a text that does not diverge with its length.
std::string probe_markdown(const std::vector<std::vector<Measurement>>& runs, const ProbeOptions& options);
// Of one run, named `weights`.
std::string probe_json(const std::vector<Measurement>& measurements, const ProbeOptions& options,
                       const std::string& weights);

}  // namespace mulligan::probe
