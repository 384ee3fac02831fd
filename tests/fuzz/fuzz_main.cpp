// libFuzzer's entry for the target that the build names in MULLIGAN_FUZZ_TARGET.
#include <cstdint>

#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  mulligan::fuzz::MULLIGAN_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}
