// What a probe found, for people and as JSON.
#pragma once

#include <string>
#include <vector>

#include "lab/probe/measure.h"

namespace mulligan::probe {

// A row for each comparison (difference.h), and one for each precision with the bytes of its weights, and with
// its score where it was asked for. Ends with a newline.
std::string probe_text(const std::vector<Measurement>& measurements, const ProbeOptions& options);
// The same of several runs, each with the same measurements: a Markdown table with mean, standard deviation and
// n. Flips count per thousand tokens, a text that does not diverge with its length.
std::string probe_markdown(const std::vector<std::vector<Measurement>>& runs, const ProbeOptions& options);
// Of one run, named `weights`.
std::string probe_json(const std::vector<Measurement>& measurements, const ProbeOptions& options,
                       const std::string& weights);

}  // namespace mulligan::probe
