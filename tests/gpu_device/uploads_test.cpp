// Uploads do not wait for the work before them, but the host does not run ahead without end.
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

}  // namespace
}  // namespace mulligan::cuda::uploads_test
