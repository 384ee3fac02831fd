#include "tests/kernels/backend_under_test.h"
#include "tests/support/test_device.h"

namespace mulligan::kernel_test {

BackendUnderTest backend_under_test(int variant) {
  const char* orders[] = {"\"forward\"", "\"reverse\"", "\"interleaved\""};
  return {plugin_file("cuda"),
          MULLIGAN_KERNEL_PLUGINS,
          {{"device", '"' + test_device() + '"'},
           {"attention", "\"own\""},
           {"emulated_order", orders[(variant - 1) % 3]}},
          false};
}

BackendUnderTest reference_under_test() {
  return {plugin_file("cpu"), MULLIGAN_KERNEL_PLUGINS, {{"threads", "2"}}, true};
}

}  // namespace mulligan::kernel_test
