// Libraries that go with the driver, and the forms of functions that it has.
#include "plugins/backends/cuda/compile/cuda_library.h"
#include "plugins/backends/cuda/compile/nvrtc.h"
#include "tests/gpu_device/stub_device.h"

namespace mulligan::cuda::driver_test {
namespace {

using Names = std::vector<std::string>;

// The headers are of CUDA 13, which calls cuEventElapsedTime_v2 what the stub, as a driver of 12.4, does not have.
TEST_F(StubDevice, ADriverOlderThanTheHeadersIsEnough) {
  for (const int version : {12040, 12080, 13000}) {
    stub().driver_version = version;
    const Driver driver;
    EXPECT_EQ(driver.version(), version);
    EXPECT_NE(driver.EventElapsedTime, nullptr);
  }
}

TEST_F(StubDevice, ADriverThatIsTooOldIsNamed) {
  stub().driver_version = 11080;
  EXPECT_EQ(said_by([] { Driver(); }),
            "NVIDIA's driver is of CUDA 11.8; install one of CUDA 12.4 or newer, or "
            "set backend.device = \"emulated\" to run the kernels on the CPU");
}

TEST(CudaLibraries, AreNotNewerThanTheDriver) {
  EXPECT_EQ(cuda_library_names("libnvrtc", 12040), (Names{"libnvrtc.so.12", "libnvrtc.so"}));
  EXPECT_EQ(cuda_library_names("libnvrtc", 13000),
            (Names{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}));
  EXPECT_EQ(cuda_library_names("libnvrtc", 0), (Names{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}));
  EXPECT_NO_THROW(require_cuda_major("NVRTC 13.0", 13, 13000));
  EXPECT_NO_THROW(require_cuda_major("NVRTC 12.4", 12, 13000));
  EXPECT_NO_THROW(require_cuda_major("NVRTC 13.0", 13, 0));
  EXPECT_EQ(said_by([] { require_cuda_major("NVRTC 13.0", 13, 12040); }),
            "NVRTC 13.0 was found, but the driver, of CUDA 12.4, may not load "
            "what it makes; install that of CUDA 12 (12.4 or newer), which goes "
            "with the driver of CUDA 12.4, or a driver of CUDA 13.0 or newer");
}

TEST_F(StubDevice, NvrtcIsChosenByTheDriversVersion) {
  EXPECT_EQ(Nvrtc({12040}).version(), "12.4");
}

}  // namespace
}  // namespace mulligan::cuda::driver_test
