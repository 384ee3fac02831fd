#include "tests/kernels/backend_under_test.h"
#include "tests/support/test_device.h"

namespace mulligan::kernel_test {

BackendUnderTest backend_under_test(int variant) {
  const char* orders[] = {"\"forward\"", "\"reverse\"", "\"interleaved\""};
  return {MULLIGAN_CUDA_BACKEND_FILE,
          MULLIGAN_KERNEL_PLUGIN_FILES,
          {{"device", '"' + test_device() + '"'}, {"emulated_order", orders[(variant - 1) % 3]}},
          false};
}

BackendUnderTest backend_beside() {
  return {MULLIGAN_CPU_BACKEND_FILE, MULLIGAN_KERNEL_PLUGIN_FILES, {{"threads", "2"}}, true};
}

}  // namespace mulligan::kernel_test
