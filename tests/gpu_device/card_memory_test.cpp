// The memory of a card, which all processes on it share.
#include "tests/gpu_device/stand_in_device.h"

namespace mulligan::cuda::card_memory_test {
namespace {

constexpr std::size_t kGigabyte = 1'000'000'000;

TEST_F(StandInDevice, TellsWhatOtherProcessesLeaveOfItsMemory) {
  stand_in().card_bytes = 80 * kGigabyte;
  GpuDevice first = device();
  EXPECT_EQ(first.facts().memory_bytes, 80 * kGigabyte);
  void* memory = first.allocate(60 * kGigabyte);
  {
    GpuDevice second = device();
    EXPECT_EQ(second.facts().memory_bytes, 20 * kGigabyte);
    EXPECT_EQ(
        refusal_of([&] { second.allocate(30 * kGigabyte); }),
        "Stand-in H100 has 20.00 GB of its 80.00 GB left, and a tensor takes 30.00 GB; see with nvidia-smi "
        "whether another process uses it");
  }
  first.free(memory);
  EXPECT_EQ(device().facts().memory_bytes, 80 * kGigabyte);
}

}  // namespace
}  // namespace mulligan::cuda::card_memory_test
