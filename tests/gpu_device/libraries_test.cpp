// Which file of a library is opened, which versions of cuDNN are refused, with the line that installs another, and the forms of
// functions that the driver has.
#include <dlfcn.h>

#include <filesystem>
#include <fstream>

#include "plugins/backends/cuda/compile/cuda_library.h"
#include "plugins/backends/cuda/compile/nvrtc.h"
#include "plugins/backends/cuda/gpu/cudnn/functions.h"
#include "tests/gpu_device/stub_device.h"
#include "tests/support/scratch_folder.h"

namespace mulligan::cuda::libraries_test {
namespace {

namespace fs = std::filesystem;
using cudnn::Functions;

class Libraries : public StubDevice {
 protected:
  // The stub of this name, copied to a folder of the test.
  std::string put(const std::string& library, const fs::path& where) const {
    void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_NOLOAD);
    Dl_info own;
    dladdr(dlsym(handle, library.starts_with("libcudnn") ? "cudnnGetVersion" : "nvrtcVersion"), &own);
    fs::create_directories(folder_ / where);
    fs::copy_file(own.dli_fname, folder_ / where / library);
    dlclose(handle);
    return (folder_ / where / library).string();
  }
  static std::string refusal(std::size_t version, std::size_t cuda = 12090, int driver = 12040) {
    stub().cudnn_version = version;
    stub().cudnn_cuda = cuda;
    return said_by([driver] { Functions({driver, {}}); });
  }

  test_support::ScratchFolder scratch_;
  const fs::path folder_ = scratch_.path();
};

TEST_F(Libraries, VersionsOfCudnnWithAKnownDefectAreRefused) {
  for (const std::size_t version : {90700UL, 91002UL, 91300UL, 91501UL})
    EXPECT_TRUE(contains(refusal(version),
                         "is no multiple of 128; run pip install --upgrade 'nvidia-cudnn-cu12>=9.18.1'"));
  for (const std::size_t version : {91600UL, 91700UL, 91701UL, 91800UL})
    EXPECT_TRUE(contains(refusal(version),
                         "wrong gradients of packed rows (TransformerEngine issue 2186); run pip install"));
  EXPECT_TRUE(contains(refusal(91002), "cuDNN 9.10.2 of /"));
  for (const std::size_t version : {91801UL, 91900UL, 92500UL}) {
    stub().cudnn_version = version;
    EXPECT_NO_THROW(Functions({12040, {}})) << version;
  }
}

// One soname serves the builds for CUDA 12 and 13.
TEST_F(Libraries, CudnnForANewerCudaThanTheDriversIsRefused) {
  EXPECT_TRUE(contains(
      refusal(91900, 13000, 12040),
      "is for CUDA 13, and the driver is of CUDA 12.4; run pip install --upgrade 'nvidia-cudnn-cu12"));
  stub().cudnn_cuda = 12090;
  EXPECT_NO_THROW(Functions({13000, {}}));
}

// cuDNN compiles attention with it, and finds that out in the first step.
TEST_F(Libraries, CudnnWithoutNvrtcIsRefused) {
  const std::string sentence = refusal(91900, 14000, 14000);
  EXPECT_TRUE(contains(
      sentence,
      "NVRTC of CUDA 14, with which cuDNN 9.19.0 compiles attention, was not found (libnvrtc.so.14); run pip"));
}

TEST_F(Libraries, OfTheActivePythonComeBeforeTheSystems) {
  const std::string older = put("libcudnn.so.9", "lib/python3.9/site-packages/nvidia/cudnn/lib"),
                    wheel = put("libcudnn.so.9", "lib/python3.12/site-packages/nvidia/cudnn/lib"),
                    cuda_13 = put("libnvrtc.so.12", "lib/python3.12/site-packages/nvidia/cu13/lib");
  setenv("VIRTUAL_ENV", folder_.c_str(), 1);
  const Functions functions({12040, {}});
  EXPECT_EQ(functions.library.file(), wheel);
  EXPECT_EQ(functions.nvrtc->file(), cuda_13);
  EXPECT_EQ(cuda_library_files({12040, {}}, "cudnn", {"libcudnn.so.9"}),
            (std::vector<std::string>{wheel, older, "libcudnn.so.9"}));
}

TEST_F(Libraries, OfThePythonOnThePathAreFound) {
  const std::string wheel = put("libcudnn.so.9", "lib/python3.11/dist-packages/nvidia/cudnn/lib");
  fs::create_directories(folder_ / "bin");
  fs::create_symlink("/usr/bin/true", folder_ / "bin/python3");
  const std::string path = std::getenv("PATH"), home = std::getenv("HOME") ? std::getenv("HOME") : "";
  unsetenv("VIRTUAL_ENV");
  setenv("PATH", ("/nowhere:" + (folder_ / "bin").string() + ":" + path).c_str(), 1);
  setenv("HOME", folder_.c_str(), 1);
  const std::vector<std::string> files = cuda_library_files({12040, {}}, "cudnn", {"libcudnn.so.9"});
  setenv("PATH", path.c_str(), 1);
  setenv("HOME", home.c_str(), 1);
  EXPECT_EQ(files, (std::vector<std::string>{wheel, "libcudnn.so.9"}));
}

TEST_F(Libraries, OfAGivenFolderComeFirst) {
  put("libcudnn.so.9", "lib/python3.12/site-packages/nvidia/cudnn/lib");
  const std::string given = put("libcudnn.so.9", "given");
  setenv("VIRTUAL_ENV", folder_.c_str(), 1);
  const std::string path = folder_.string() + ":" + (folder_ / "given").string();
  EXPECT_EQ(Functions({12040, path}).library.file(), given);
  EXPECT_EQ(said_by([] {
              Functions({12040, "/nowhere"});
            }),
            "backend.library_path: there is no folder /nowhere");
}

// A file that is there and does not load is not called missing.
TEST_F(Libraries, AFileThatDoesNotLoadIsNamedWithTheReason) {
  fs::create_directories(folder_ / "given");
  std::ofstream(folder_ / "given/libnothing.so") << "text";
  const std::string file = (folder_ / "given/libnothing.so").string();
  EXPECT_TRUE(contains(said_by([&] { plugins::SharedLibrary("Nothing", {file}, "install it"); }),
                       file + ": " + file + ": file too short"));
}

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
  EXPECT_EQ(cuda_library_names("libnvrtc", 12040), (Names{"libnvrtc.so.12"}));
  EXPECT_EQ(cuda_library_names("libnvrtc", 13000), (Names{"libnvrtc.so.13", "libnvrtc.so.12"}));
  EXPECT_EQ(cuda_library_names("libnvrtc", 0), (Names{"libnvrtc.so.13", "libnvrtc.so.12"}));
}

TEST_F(StubDevice, NvrtcIsChosenByTheDriversVersion) {
  EXPECT_EQ(Nvrtc({12040}).version(), "12.4");
}

}  // namespace
}  // namespace mulligan::cuda::libraries_test
