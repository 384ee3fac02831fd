// The sections of a run's report, in HTML. Each is there in every report; where a run has nothing to show, it
// says so and how to get it.
#pragma once

#include <string>

#include "framework/report_page/run_record.h"

namespace mulligan::report {

std::string summary_section(const RunRecord& run);
std::string training_section(const RunRecord& run);
std::string memory_section(const RunRecord& run);
std::string time_section(const RunRecord& run);
std::string scores_section(const RunRecord& run);
std::string artifact_section(const RunRecord& run);
std::string ttt_section(const RunRecord& run);
std::string calibration_section(const RunRecord& run);  // calibration_section.cpp
std::string ensemble_section(const RunRecord& run);     // ensemble_section.cpp
std::string configuration_section(const RunRecord& run);

}  // namespace mulligan::report
