#include "tests/kernels/backend_under_test.h"
#include "tests/support/long_tests.h"

namespace mulligan::kernel_test {

// The cuda backend around the PTX executor, beside the cpu backend.
BackendUnderTest backend_under_test(int variant) {
  const char* orders[] = {"\"forward\"", "\"reverse\"", "\"interleaved\""};
  return {
      MULLIGAN_PTX_PLUGIN,
      MULLIGAN_KERNEL_PLUGINS,
      {{"device", "\"emulated\""}, {"attention", "\"own\""}, {"emulated_order", orders[(variant - 1) % 3]}},
      false};
}

BackendUnderTest backend_beside() {
  return {plugin_file("cpu"), MULLIGAN_KERNEL_PLUGINS, {{"threads", "2"}}, true};
}

}  // namespace mulligan::kernel_test
