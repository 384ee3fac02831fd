// What this build made for its tests. Found from the program, not compiled in: objects of two builds of the same sources are then the
// same for the compiler's cache.
#pragma once

#include <filesystem>

namespace mulligan::test_support {

// tests/`name` of the build folder in whose bin/ this program lies.
inline std::filesystem::path built(const char* name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "tests" / name;
}

}  // namespace mulligan::test_support
