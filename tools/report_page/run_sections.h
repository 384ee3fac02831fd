// The sections of a run's report, in HTML. One that a run has nothing for is empty, but for the result and the
// training; missing_text() says how to get it.
#pragma once

#include <string>

#include "tools/report_page/run_record.h"

namespace mulligan::report {

// What speaks against a run (RunRecord::doubts), as warnings.
std::string doubts_html(const std::vector<std::string>& doubts);

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
std::string samples_section(const RunRecord& run);  // samples_section.cpp

// A sentence about what could still be made of a run; "" where there is nothing.
std::string missing_text(const RunRecord& run);

}  // namespace mulligan::report
