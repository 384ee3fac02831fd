// Cases that take long have a short form; `tests/run --long` asks for the long one, before a release.
#pragma once

#include <cstdlib>

namespace mulligan {

inline bool long_tests() {
  const char* word = std::getenv("MULLIGAN_LONG_TESTS");
  return word != nullptr && *word != 0;
}

}  // namespace mulligan
