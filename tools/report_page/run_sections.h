// The sections of a run's report.
#pragma once

#include <span>
#include <string>

#include "tools/report_page/run_record.h"

namespace mulligan::report {

struct RunSection {
  const char* id;
  const char* title;
  // HTML below the title; "" where the run has nothing for it.
  std::string (*body)(const RunRecord& run);
};
// In the order of the page.
std::span<const RunSection> run_sections();

// What speaks against a run (RunRecord::doubts), as warnings.
std::string doubts_html(const RunRecord& run);

// A sentence about what could still be made of a run; "" where there is nothing.
std::string missing_text(const RunRecord& run);

}  // namespace mulligan::report
