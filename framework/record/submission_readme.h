// README.md of a submission.
#pragma once

#include <string>

#include "framework/record/submission.h"

namespace mulligan::record {

// The part that states figures, between two comment lines. It follows from submission.json alone, so that
// `mulligan record --verify` can make it again and compare; all around it is free for people to write in.
std::string readme_figures(const Submission& submission);

// The whole file.
std::string readme_text(const Submission& submission);

}  // namespace mulligan::record
