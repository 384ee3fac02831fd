// Cases that take long have a short form; `tests/run --long` asks for the long one, before a release.
#pragma once

#include <cstdlib>

namespace mulligan {

inline bool long_tests() {
  const char* word = std::getenv("MULLIGAN_LONG_TESTS");
  return word != nullptr && *word != 0;
}

// A slow backend, which compiles each form of a kernel anew, tries some forms alone unless this says otherwise
// (tests/ptx/list_opcodes sets it: its list of instructions must be whole).
inline bool all_forms() {
  return std::getenv("MULLIGAN_TEST_ALL_FORMS") != nullptr;
}

}  // namespace mulligan
