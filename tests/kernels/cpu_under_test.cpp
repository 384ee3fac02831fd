#include "tests/kernels/backend_under_test.h"

namespace mulligan::kernel_test {

BackendUnderTest backend_under_test(int variant) {
  return {plugin_file("cpu"), MULLIGAN_KERNEL_PLUGINS, {{"threads", std::to_string(variant)}}, true};
}

BackendUnderTest reference_under_test() {
  return {};
}

}  // namespace mulligan::kernel_test
