// Calls that break a capture on a GPU are refused. (What is replayed: tests/end_to_end/captured_calls_test.cpp.)
#include <gtest/gtest.h>

#include "plugins/backends/cuda_emulated/emulated_device.h"
#include "tests/support/sentence.h"

namespace mulligan::kernel_test::capture_test {
namespace {

// What waits, allocates, loads or nests while a graph is captured breaks the capture on a GPU.
TEST(Capture, UnsafeCallsAreRefused) {
  using namespace cuda;
  EmulatedDevice device(EmulatedOrder::forward);
  void* memory = device.allocate(64);
  char bytes[64] = {};
  device.to_device(memory, bytes, sizeof bytes);
  device.begin_capture();
  device.fill(memory, 1, 64);
  const std::unique_ptr<CapturedGraph> filled = device.end_capture();
  const auto refused = [&](const char* what, const std::function<void()>& call) {
    device.begin_capture();
    EXPECT_TRUE(contains(said_by(call), what));
    device.abandon_capture();
  };
  std::string reason;
  mlg_cuda_launch launch{};
  refused("waiting for the device", [&] { device.synchronize(); });
  refused("an upload", [&] { device.to_device(memory, bytes, 64); });
  refused("a download", [&] { device.from_device(bytes, memory, 64); });
  refused("memory was asked for", [&] { device.allocate(1); });
  refused("a function was loaded", [&] { device.load({"kernel", "source", &launch, nullptr}); });
  refused("a matmul", [&] { device.gemm({}); });
  refused("attention", [&] { device.attention({}, reason); });
  refused("a second capture", [&] { device.begin_capture(); });
  refused("a graph was launched", [&] { device.launch(*filled); });
  refused("memory was freed", [&] {
    device.free(device.memory().allocate(1));
    device.end_capture();
  });
  // Nothing of an abandoned capture ran, and the device is of use afterwards.
  device.from_device(bytes, memory, 64);
  EXPECT_EQ(bytes[0], 0);
  device.launch(*filled);
  device.from_device(bytes, memory, 64);
  EXPECT_EQ(bytes[63], 1);
  EXPECT_THROW(device.end_capture(), std::runtime_error);
}

}  // namespace
}  // namespace mulligan::kernel_test::capture_test
