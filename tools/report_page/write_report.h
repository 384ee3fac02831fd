// The report's and the comparison's pages as files.
#pragma once

#include <filesystem>
#include <string>

#include "tools/report_page/comparison.h"

namespace mulligan::report {

std::string run_page(const RunRecord& run);
std::string comparison_page(const Comparison& comparison);

// Reads a run directory and writes its report.html anew. Throws Error.
void write_report(const std::filesystem::path& directory);

}  // namespace mulligan::report
