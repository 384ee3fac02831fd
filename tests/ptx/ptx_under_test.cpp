#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/kernels/backend_fixture.h"
#include "tests/support/long_tests.h"
#include "tests/support/nvrtc.h"

namespace mulligan::kernel_test {

// The cuda backend around the PTX executor, beside the cpu backend.
BackendUnderTest backend_under_test(int variant) {
  const char* orders[] = {"\"forward\"", "\"reverse\"", "\"interleaved\""};
  return {
      MULLIGAN_PTX_PLUGIN,
      MULLIGAN_KERNEL_PLUGINS,
      {{"device", "\"emulated\""}, {"attention", "\"own\""}, {"emulated_order", orders[(variant - 1) % 3]}},
      false,
      !long_tests()};
}

BackendUnderTest backend_beside() {
  return {plugin_file("cpu"), MULLIGAN_KERNEL_PLUGINS, {{"threads", "2"}}, true};
}

namespace {

// All tests of the program are skipped, each by name, where there is no NVRTC.
class NeedsNvrtc : public testing::Environment {
 public:
  void SetUp() override {
    try {
      const BackendFixture backend(backend_under_test(1));
    } catch (const std::runtime_error& error) {
      if (says_no_nvrtc(error.what())) GTEST_SKIP() << "NVRTC's PTX: " << error.what();
      throw;
    }
  }
};
[[maybe_unused]] testing::Environment* const needs_nvrtc = testing::AddGlobalTestEnvironment(new NeedsNvrtc);

}  // namespace
}  // namespace mulligan::kernel_test
