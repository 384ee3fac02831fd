#include "tests/kernels/backend_under_test.h"

namespace mulligan::kernel_test {

BackendUnderTest backend_under_test(int variant) {
  const char* orders[] = {"\"forward\"", "\"reverse\"", "\"interleaved\""};
  return {MULLIGAN_CUDA_BACKEND_FILE,
          MULLIGAN_KERNEL_PLUGIN_FILES,
          {{"device", "\"emulated\""}, {"emulated_order", orders[(variant - 1) % 3]}},
          false};
}

}  // namespace mulligan::kernel_test
