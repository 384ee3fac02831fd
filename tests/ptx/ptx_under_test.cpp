#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <string_view>

#include "tests/kernels/backend_fixture.h"
#include "tests/support/long_tests.h"
#include "tests/support/nvrtc.h"

namespace mulligan::kernel_test {

// The cuda backend around the PTX executor, against the cpu backend.
BackendUnderTest backend_under_test(int variant) {
  const char* orders[] = {"\"forward\"", "\"reverse\"", "\"interleaved\""};
  return {
      MULLIGAN_PTX_PLUGIN,
      MULLIGAN_KERNEL_PLUGINS,
      {{"device", "\"emulated\""}, {"attention", "\"own\""}, {"emulated_order", orders[(variant - 1) % 3]}},
      false,
      !long_tests()};
}

BackendUnderTest reference_under_test() {
  return {plugin_file("cpu"), MULLIGAN_KERNEL_PLUGINS, {{"threads", "2"}}, true};
}

namespace {

// Empty, or why there is no NVRTC.
std::string missing_nvrtc() {
  try {
    const BackendFixture backend(backend_under_test(1));
    return {};
  } catch (const std::runtime_error& error) {
    if (says_no_nvrtc(error.what())) return error.what();
    throw;
  }
}

// Where there is no NVRTC each test is skipped by name, but for those of the executor alone. (A skip in an environment
// would count the tests as passed.)
class NeedsNvrtc : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& test) override {
    static const std::string missing = missing_nvrtc();
    if (std::string_view(test.test_suite_name()).starts_with("Ptx") || missing.empty()) return;
    GTEST_SKIP() << "NVRTC's PTX: " << missing;
  }
};
[[maybe_unused]] const bool needs_nvrtc = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new NeedsNvrtc);
  return true;
}();

}  // namespace
}  // namespace mulligan::kernel_test
