// The memory of a card, which all processes on it share.
#include "tests/gpu_device/stub_device.h"

namespace mulligan::cuda::card_memory_test {
namespace {

constexpr std::size_t kGigabyte = 1'000'000'000;

TEST_F(StubDevice, TellsWhatOtherProcessesLeaveOfItsMemory) {
  stub().card_bytes = 80 * kGigabyte;
  GpuDevice first = device();
  // Other tests of this process may have left some of theirs.
  const std::size_t left = first.facts().memory_bytes;
  EXPECT_GT(left, 79 * kGigabyte);
  void* memory = first.allocate(60 * kGigabyte);
  {
    GpuDevice second = device();
    EXPECT_EQ(second.facts().memory_bytes, left - 60 * kGigabyte);
    const std::string refusal = said_by([&] { second.allocate(30 * kGigabyte); });
    EXPECT_NE(refusal.find(" GB of its 80.00 GB left, and a tensor takes 30.00 GB; see with nvidia-smi"),
              std::string::npos)
        << refusal;
  }
  first.free(memory);
  EXPECT_EQ(device().facts().memory_bytes, left);
}

}  // namespace
}  // namespace mulligan::cuda::card_memory_test
