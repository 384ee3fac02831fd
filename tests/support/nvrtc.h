// Tests that compile CUDA kernels can run only where NVRTC is; every other refusal is a failure.
#pragma once

#include <string_view>

namespace mulligan {

// Whether an error's sentence says that this build or this machine has no NVRTC: the one reason to skip
// such a test.
inline bool says_no_nvrtc(std::string_view sentence) {
  return sentence.find("built without CUDA") != sentence.npos ||
         sentence.find("NVRTC, CUDA's run-time compiler, was not") != sentence.npos;
}

}  // namespace mulligan
