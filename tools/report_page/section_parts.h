// What the sections of a run's report share.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tools/report_page/html.h"
#include "tools/report_page/run_record.h"

namespace mulligan::report {

std::string count_text(double value);
std::string bpb_text(double value);
std::string warning(std::string_view text);
// "-" without a value.
Cell number_cell(const std::optional<double>& value, int digits);
// An empty cell for a value that is not finite.
Cell score_cell(double value);
Cell count_cell(double value);
// "attention plans 22 + 0 + 1, ...": made before the clock, on it and after it. "" if nothing is counted.
std::string made_text(const ResultValue& result);

// The sections of score_sections.cpp.
std::string scores(const RunRecord& run);
std::string samples(const RunRecord& run);
std::string artifact(const RunRecord& run);
std::string ttt_section(const RunRecord& run);
std::string calibration(const RunRecord& run);
std::string ensemble(const RunRecord& run);

}  // namespace mulligan::report
