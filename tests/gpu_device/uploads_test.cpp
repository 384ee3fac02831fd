// The order of the device's work and its memory: uploads do not wait for the work before them, marks wait for no later work, and
// all processes on a card share its memory.
#include <algorithm>

#include "tests/gpu_device/stub_device.h"

namespace mulligan::cuda::uploads_test {
namespace {

std::vector<char> bytes(std::size_t count, std::size_t seed) {
  std::vector<char> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<char>(seed + i * 7);
  return values;
}

// Uploads `count` more pieces of `size` bytes, each from memory that is overwritten right after.
void upload(GpuDevice& gpu, std::vector<void*>& places, std::size_t count, std::size_t size) {
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<char> host = bytes(size, places.size());
    places.push_back(gpu.allocate(size));
    gpu.to_device(places.back(), host.data(), size);
    std::fill(host.begin(), host.end(), '\0');
  }
}
void expect_arrived(GpuDevice& gpu, const std::vector<void*>& places, std::size_t size) {
  gpu.synchronize();
  for (std::size_t i = 0; i < places.size(); ++i) {
    std::vector<char> arrived(size);
    gpu.from_device(arrived.data(), places[i], size);
    EXPECT_TRUE(arrived == bytes(size, i)) << i;
    gpu.free(places[i]);
  }
}

TEST_F(StubDevice, UploadsRunAheadOfTheDevice) {
  GpuDevice gpu = device();
  std::vector<void*> places;
  stub().hold = true;
  upload(gpu, places, 64, 1000);
  EXPECT_EQ(stub().waits, 0);
  upload(gpu, places, 1, 1000);  // and no further
  EXPECT_EQ(stub().waits, 1);
  EXPECT_EQ(stub().host_allocations, 1);
  expect_arrived(gpu, places, 1000);
}

// 32 MiB are under way at most.
TEST_F(StubDevice, LargeUploadsWaitForTheirRoom) {
  constexpr std::size_t kSize = std::size_t{10} << 20;
  GpuDevice gpu = device();
  std::vector<void*> places;
  stub().hold = true;
  upload(gpu, places, 3, kSize);
  EXPECT_EQ(stub().waits, 0);
  upload(gpu, places, 2, kSize);  // over the first and the second
  EXPECT_EQ(stub().waits, 2);
  EXPECT_EQ(stub().host_allocations, 1);
  expect_arrived(gpu, places, kSize);
}

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
}  // namespace mulligan::cuda::uploads_test
