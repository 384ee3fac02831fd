// The report's and the comparison's pages as files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tools/report_page/comparison.h"

namespace mulligan::report {

// The report of a run; with `others`, it ends with a comparison of all of them.
std::string run_page(const RunRecord& run, const std::vector<RunRecord>& others = {});
std::string comparison_page(const Comparison& comparison);

// Reads a run directory and writes its report.html anew. Throws Error.
void write_report(const std::filesystem::path& directory);

}  // namespace mulligan::report
