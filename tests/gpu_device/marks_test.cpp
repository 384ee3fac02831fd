// Marks in the order of the device's work. A wait for a mark waits for the work that was enqueued before it, and no longer.
#include "tests/gpu_device/stub_device.h"

namespace mulligan::cuda::marks_test {
namespace {

TEST_F(StubDevice, AMarkIsWaitedForAndNoLaterWork) {
  GpuDevice gpu = device();
  auto* memory = static_cast<char*>(gpu.allocate(3));
  gpu.fill(memory, 0, 3);
  stub().hold = true;
  gpu.fill(memory, 1, 1);
  gpu.mark(0);
  gpu.fill(memory + 1, 2, 1);
  gpu.mark(1);
  gpu.fill(memory + 2, 3, 1);
  EXPECT_EQ(memory[0], 0);
  gpu.await(0);
  EXPECT_EQ(memory[0], 1);
  EXPECT_EQ(memory[1], 0) << "work after the mark still runs";
  gpu.await(1);
  EXPECT_EQ(memory[1], 2);
  EXPECT_EQ(memory[2], 0);
  EXPECT_EQ(stub().waits, 2);
  gpu.await(0);
  EXPECT_EQ(stub().waits, 2) << "a finished mark needs no wait";
  gpu.await(3);  // never marked
  EXPECT_EQ(stub().waits, 2);
  gpu.mark(0);  // marked again, after all work
  gpu.await(0);
  EXPECT_EQ(memory[2], 3);
  gpu.free(memory);
}

}  // namespace
}  // namespace mulligan::cuda::marks_test
