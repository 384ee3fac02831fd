// Which weights a run says are its own.
#pragma once

#include <string>

#include "framework/report/run_directory.h"

namespace mulligan {

// The digest of the tensors that training saved (result.json), and the sha256 of the artifact that quantize made
// (quantize_result.json); "" where there is no such result, or it was changed since.
std::string recorded_weights_sha256(const RunFiles& run);
std::string recorded_artifact_sha256(const RunFiles& run);

}  // namespace mulligan
