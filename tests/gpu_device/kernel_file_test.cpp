// Functions compiled ahead of time: found by all that the compiler would get, or not at all. Functions that are compiled in
// parallel; one module for each function and its constants.
#include "plugins/backends/cuda/compile/kernel_file.h"

#include <mulligan/cuda_kernel.h>

#include <fstream>
#include <set>

#include "framework/core/file.h"
#include "tests/gpu_device/stub_device.h"
#include "tests/support/scratch_folder.h"

namespace mulligan::cuda::kernel_file_test {
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

class KernelFiles : public StubDevice {
 protected:
  std::string path() const { return folder_ / "sm_90a.kernels"; }
  static KernelFile::Origin origin() { return {"sm_90a", "12.4", compile_context()}; }
  // With the function "norm<float>" of `text` at eps = 0.5.
  void write(const KernelFile::Origin& origin, const std::string& text = "source") const {
    KernelFile file(origin);
    const Launch launch("norm<float>", 0.5);
    file.add(function_source(text.c_str(), launch), {"compiled ahead", "norm<float>", {}});
    file.write(path());
  }
  void write_bytes(const std::string& bytes) const { std::ofstream(path(), std::ios::binary) << bytes; }
  // Compilations of a device that is given the file and asked for that function.
  int compilations() const {
    reset_stubs();
    GpuDevice gpu(0, "", path());
    const Launch launch("norm<float>", 0.5);
    gpu.expect({"norm", "source", &launch});
    gpu.load({"norm", "source", &launch});
    EXPECT_EQ(stub().modules_loaded, 1);
    const bool ahead = stub().loaded.at(0) == "compiled ahead";
    EXPECT_EQ(ahead, stub().compilations == 0);
    return stub().compilations;
  }

  test_support::ScratchFolder folder_;
};

TEST_F(KernelFiles, AFunctionOfTheFileIsNotCompiled) {
  write(origin());
  EXPECT_EQ(compilations(), 0);
}

// Every part of what the compiler gets, changed by itself.
TEST_F(KernelFiles, AFunctionOfOtherSourcesIsNotTaken) {
  write(origin(), "source, changed");
  EXPECT_EQ(compilations(), 1);
  write(origin());
  GpuDevice gpu(0, "", path());
  const Launch other_constant("norm<float>", 0.25), other_function("norm<bf16>", 0.5);
  gpu.load({"norm", "source", &other_constant});
  gpu.load({"norm", "source", &other_function});
  EXPECT_EQ(stub().compilations, 3);
}

TEST_F(KernelFiles, AFileOfAnotherOriginIsLeftAlone) {
  KernelFile::Origin other = origin();
  other.architecture = "sm_80";
  write(other);
  EXPECT_EQ(compilations(), 1);
  other = origin();
  other.context += " ";
  write(other);
  EXPECT_EQ(compilations(), 1);
  other = origin();
  other.nvrtc_version = "13.0";  // the driver is of 12.4
  write(other);
  EXPECT_EQ(compilations(), 1);
  other.nvrtc_version = "12.9";
  write(other);
  EXPECT_EQ(compilations(), 0);
}

TEST_F(KernelFiles, ADamagedFileIsLeftAlone) {
  write(origin());
  const std::string whole = read_file(path());
  for (const std::size_t length : {std::size_t{0}, std::size_t{7}, std::size_t{20}, whole.size() - 1}) {
    write_bytes(whole.substr(0, length));
    EXPECT_EQ(compilations(), 1) << length;
  }
  for (const std::size_t place : {std::size_t{3}, std::size_t{9}, whole.size() / 2, whole.size() - 1}) {
    std::string changed = whole;
    changed[place] ^= 1;
    write_bytes(changed);
    EXPECT_EQ(compilations(), 1) << place;
  }
  write_bytes(whole + "more");
  EXPECT_EQ(compilations(), 1);
  write_bytes(whole);
  EXPECT_EQ(compilations(), 0);
}

TEST_F(KernelFiles, AFileThatIsNamedMustBeThere) {
  EXPECT_EQ(said_by([&] { GpuDevice(0, "", path()); }), "backend.kernel_file: there is no file " + path());
}

TEST_F(KernelFiles, ReadsWhatWasWritten) {
  KernelFile file(origin());
  const FunctionSource one{"f", {"-DA=1", "-DB=2"}, "text"}, two{"g", {}, "text"},
      three{"f", {"-DA=1"}, std::string("a\0b", 3)};
  file.add(one, {std::string("\0\1", 2), "symbol", {1, 2, 3, 4, 5}});
  file.add(two, {"", "s", {}});
  file.add(three, {"code", "", {}});
  file.write(path());
  const KernelFile read = KernelFile::read(path());
  EXPECT_EQ(read.origin(), origin());
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(read.find(one)->cubin, std::string("\0\1", 2));
  EXPECT_EQ(read.find(one)->symbol, "symbol");
  EXPECT_EQ(read.find(one)->resources.stack_bytes, 5);
  EXPECT_EQ(read.find(three)->cubin, "code");
  EXPECT_EQ(read.find({"f", {"-DA=1"}, "text"}), nullptr);
}

// What was expected is compiled in parallel, by so many threads, each function once.
TEST_F(StubDevice, ExpectedFunctionsAreCompiledInParallel) {
  for (const int threads : {1, 4}) {
    reset_stubs();
    GpuDevice gpu(0, "", "", threads);
    std::vector<std::string> names;
    for (int i = 0; i < 40; ++i) names.push_back("norm<" + std::to_string(i) + ">");
    stub().compile_together = threads;
    for (int twice = 0; twice < 2; ++twice) {
      for (const std::string& name : names) {
        const Launch launch(name.c_str(), 0.5);
        gpu.expect({"norm", "source", &launch});
      }
    }
    for (const std::string& name : names) {
      const Launch launch(name.c_str(), 0.5);
      gpu.load({"norm", "source", &launch});
    }
    EXPECT_EQ(stub().compilations, 40);
    EXPECT_EQ(stub().most_at_once, threads);
    EXPECT_EQ(stub().modules_loaded, 40);
    for (int i = 0; i < 40; ++i)
      EXPECT_TRUE(stub().loaded[static_cast<std::size_t>(i)].starts_with(names[static_cast<std::size_t>(i)]));
  }
}

TEST_F(StubDevice, ARefusalOfTheCompilerComesWithTheLoad) {
  GpuDevice gpu = device();
  const Launch good("norm<float>", 0.5), bad("refused<float>", 0.5);
  gpu.expect({"norm", "source", &bad});
  gpu.expect({"norm", "source", &good});
  gpu.load({"norm", "source", &good});
  for (int twice = 0; twice < 2; ++twice) {
    EXPECT_EQ(said_by([&] {
                gpu.load({"norm", "source", &bad});
              }),
              "NVRTC 12.4 does not compile refused<float>:\n");
  }
}

// A device that goes while functions are being made waits for these and forgets the others.
TEST_F(StubDevice, WhatWasExpectedNeedNotBeLoaded) {
  {
    GpuDevice gpu(0, "", "", 2);
    for (int i = 0; i < 100; ++i) {
      const std::string name = "norm<" + std::to_string(i) + ">";
      const Launch launch(name.c_str(), 0.5);
      gpu.expect({"norm", "source", &launch});
    }
  }
  EXPECT_LE(stub().compilations, 100);
  EXPECT_EQ(stub().modules_loaded, 0);
}

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
}  // namespace mulligan::cuda::kernel_file_test
