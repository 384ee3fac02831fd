// One module for each function and its constants, however many launches ask for it.
#include <mulligan/cuda_kernel.h>

#include <set>

#include "tests/gpu_device/stub_device.h"

namespace mulligan::cuda::functions_test {
namespace {

struct Launch : mlg_cuda_launch {
  Launch(const char* function_name, double eps, std::uint32_t shared = 0)
      : mlg_cuda_launch{}, value{"eps", eps, 1} {
    function = function_name;
    constants = &value;
    constant_count = 1;
    shared_bytes = shared;
  }
  Launch(const Launch&) = delete;
  mlg_cuda_constant value;
};

TEST_F(StubDevice, LaunchesOfOneFunctionShareItsModule) {
  {
    GpuDevice gpu = device();
    const Launch first("norm<float>", 0.5), same("norm<float>", 0.5), other("norm<float>", 0.25);
    Function& function = gpu.load({"norm", "source", &first});
    for (int i = 0; i < 1330; ++i) EXPECT_EQ(&gpu.load({"norm", "source", &same}), &function);
    EXPECT_EQ(stub().modules_loaded, 1);
    EXPECT_EQ(stub().compilations, 1);
    EXPECT_NE(&gpu.load({"norm", "source", &other}), &function);
    EXPECT_NE(&gpu.load({"norm", "another source", &same}), &function);
    EXPECT_EQ(stub().modules_loaded, 3);
    EXPECT_EQ(stub().modules_unloaded, 0);
  }
  EXPECT_EQ(stub().modules_unloaded, 3);
}

// A function of <mulligan/cuda/columns.cuh>, which 27 launches of the record's model ask for with constants and
// out of sources that it has nothing to do with.
TEST_F(StubDevice, AFunctionOfAHeaderIsOneForAllSources) {
  GpuDevice gpu = device();
  std::set<const Function*> functions;
  for (int i = 0; i < 27; ++i) {
    const Launch launch("add_column_sums", i);
    const std::string source = "#include <mulligan/cuda/columns.cuh>  // " + std::to_string(i);
    functions.insert(&gpu.load({"rms_norm_bwd", source.c_str(), &launch}));
  }
  EXPECT_EQ(functions.size(), 1u);
  EXPECT_EQ(stub().modules_loaded, 1);
  EXPECT_EQ(stub().compilations, 1);
  ASSERT_EQ(stub().loaded.size(), 1u);
  EXPECT_EQ(stub().loaded[0].substr(stub().loaded[0].find('\n')), "\n#include <mulligan/cuda/columns.cuh>\n");
}

}  // namespace
}  // namespace mulligan::cuda::functions_test
