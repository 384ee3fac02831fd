// README.md of a submission.
#pragma once

#include <string>

#include "tools/record/submission.h"

namespace mulligan::record {

// The table of the seeds and the means. It follows from submission.json alone, so `mulligan record --verify` makes it
// again and looks for it in README.md. The rest of the page is free text.
std::string readme_figures(const Submission& submission);

// The whole file.
std::string readme_text(const Submission& submission);

}  // namespace mulligan::record
