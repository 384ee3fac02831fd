// What a finished run's own files say of it: `mulligan doctor RUN`.
#pragma once

#include <filesystem>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/report/metrics_reader.h"
#include "tools/doctor/finding.h"

namespace mulligan::doctor {

// The findings that the run of `config` recorded in result.json, before its first step and at its end (D26 to
// D28, D36), and D29 of the rates that it really had. Of a run with doctor.level = "off" the recorded ones
// are skipped findings. Throws config_error where the folder holds no finished run, data_error where a file
// of it is damaged.
std::vector<Finding> examine_run_directory(const std::filesystem::path& directory, const RunConfig& config);

// D29 of a run's step lines, one finding for each optimiser: at a resume and at a switch of phases a rate may
// not rise by more than a tenth, beyond what it rises between the lines around it. Declared are a schedule's
// cycle, a phase's schedule of its own, and what the phases' factors explain. `phases` are the run's.
std::vector<Finding> check_realised_rates(const MetricsHistory& history, const std::vector<Phase>& phases);

}  // namespace mulligan::doctor
