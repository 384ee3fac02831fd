// What a finished run's own files say of it: `mulligan doctor RUN`.
#pragma once

#include <filesystem>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/report/metrics_reader.h"
#include "tools/doctor/finding.h"

namespace mulligan::doctor {

// The findings that the run of `config` recorded in result.json, and D29 of the rates that it really had. With
// doctor.level = "off" the recorded findings are skipped ones. Throws config_error where the folder holds no finished
// run, data_error where a file of it is damaged.
std::vector<Finding> examine_run_directory(const std::filesystem::path& directory, const RunConfig& config);

// D29 of a run's step lines, one finding for each optimiser. `phases` are the run's.
std::vector<Finding> check_realised_rates(const MetricsHistory& history, const std::vector<Phase>& phases);

}  // namespace mulligan::doctor
