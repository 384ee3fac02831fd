#include "tests/kernels/backend_under_test.h"

namespace mulligan::kernel_test {

BackendUnderTest backend_under_test(int variant) {
  return {
      MULLIGAN_CPU_BACKEND_FILE, MULLIGAN_KERNEL_PLUGIN_FILES, {{"threads", std::to_string(variant)}}, true};
}

BackendUnderTest backend_beside() {
  return {};
}

}  // namespace mulligan::kernel_test
