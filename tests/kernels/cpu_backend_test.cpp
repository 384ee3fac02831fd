// The cpu backend's table: what it refuses before a launch and in which words, kernels added
// and replaced, memory.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>

#include "tests/kernels/backend_fixture.h"
#include "tests/support/sentence.h"

namespace mulligan::kernel_test::cpu_backend_test {
namespace {

const Array kVector{MLG_F32, {4}, {1, 2, 3, 4}};

KernelCall good_call() {
  return kernel_call("axpby", "a y", {kVector, kVector}, {{"alpha", 2}, {"beta", 0}, {"accumulate_y", 0}});
}

// The whole table, as the host calls it; the fixture's calls go by name and cannot be wrong in these ways.
class CpuBackend : public ::testing::Test {
 protected:
  BackendFixture& backend_ = backend_with_threads(2);
  const mlg_backend_table& table_ = backend_.table();

  std::string refusal(const char* kernel, const std::vector<mlg_tensor>& arguments,
                      const std::vector<mlg_attribute>& attributes) {
    const mlg_call call{kernel, arguments.data(), static_cast<std::uint32_t>(arguments.size()),
                        attributes.data(), static_cast<std::uint32_t>(attributes.size())};
    void* prepared = nullptr;
    std::size_t workspace = 0;
    const mlg_error error = table_.prepare(backend_.instance(), &call, &prepared, &workspace);
    if (error == nullptr) table_.release(backend_.instance(), prepared);
    return error == nullptr ? "" : error;
  }

  const mlg_tensor absent_{nullptr, MLG_ABSENT, 0, {1, 1, 1, 1}};
  const mlg_tensor vector_{nullptr, MLG_F32, 1, {4, 1, 1, 1}};
  const std::vector<mlg_attribute> attributes_ = {{"accumulate_y", 0}, {"beta", 0}, {"alpha", 2}};
};

TEST_F(CpuBackend, AttributesAreFoundByNameInAnyOrder) {
  EXPECT_EQ(refusal("axpby", {vector_, absent_, vector_}, attributes_), "");
  EXPECT_EQ(backend_.run(good_call()).written.at("y").values, (std::vector<double>{2, 4, 6, 8}));
}

TEST_F(CpuBackend, UnknownKernelIsRefused) {
  EXPECT_EQ(refusal("axpbi", {vector_, absent_, vector_}, attributes_),
            "the cpu backend has no kernel named axpbi");
}

TEST_F(CpuBackend, WrongCallsAreRefusedWithKernelAndArgument) {
  EXPECT_TRUE(contains(refusal("axpby", {vector_, vector_}, attributes_),
                       "kernel axpby: the call gives 2 arguments"));
  EXPECT_TRUE(contains(refusal("axpby", {absent_, absent_, vector_}, attributes_), "argument a is required"));
  EXPECT_TRUE(contains(refusal("axpby", {vector_, absent_, vector_}, {{"alpha", 1}, {"beta", 0}}),
                       "does not give attribute accumulate_y"));
  EXPECT_TRUE(contains(refusal("axpby", {vector_, absent_, vector_}, {{"alpha", 1}, {"gamma", 0}}),
                       "attribute gamma is not"));
  EXPECT_TRUE(contains(refusal("axpby", {vector_, absent_, vector_}, {{"alpha", 1}, {"alpha", 0}}),
                       "attribute alpha is given twice"));
}

// oneDNN makes some of a matmul's code when it runs for the first time, and does not look whether it got the
// memory. In a process of its own: one that makes no matmul before. 48 rows: packed matmuls (packed_gemm.h) take 64.
TEST_F(CpuBackend, AMatmulWithoutMemoryForItsCodeIsAnError) {
  const pid_t child = fork();
  if (child == 0) {
    BackendFixture& backend = backend_with_threads(1);
    const mlg_tensor matrix{nullptr, MLG_F32, 2, {48, 48, 1, 1}};
    const std::vector<mlg_tensor> arguments(3, matrix);
    const std::vector<mlg_attribute> attributes = {
        {"transpose_a", 0}, {"transpose_b", 0}, {"alpha", 1}, {"beta", 0}};
    const mlg_call call{"matmul", arguments.data(), 3, attributes.data(), 4};
    void* prepared = nullptr;
    std::size_t workspace_bytes = 0;
    if (backend.table().prepare(backend.instance(), &call, &prepared, &workspace_bytes)) _exit(1);
    std::vector<float> a(48 * 48, 1.0F), b(a), c(a);
    std::vector<std::byte> workspace(workspace_bytes + 4096);
    auto start = reinterpret_cast<std::uintptr_t>(workspace.data());
    start = (start + 4095) / 4096 * 4096;
    void* const addresses[] = {a.data(), b.data(), c.data()};
    if (backend.table().bind(backend.instance(), prepared, addresses, reinterpret_cast<void*>(start)))
      _exit(2);
    std::ifstream statm("/proc/self/statm");
    std::uint64_t pages = 0;
    statm >> pages;
    const rlimit used{pages * static_cast<std::uint64_t>(getpagesize()), RLIM_INFINITY};
    if (setrlimit(RLIMIT_AS, &used) != 0) _exit(3);
    void* const run[] = {prepared};
    const mlg_error error = backend.table().run(backend.instance(), run, 1);
    _exit(error && std::strstr(error, "memory") ? 7 : 4);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST_F(CpuBackend, BindingWithoutAnAddressIsRefused) {
  const std::vector<mlg_tensor> arguments = {vector_, absent_, vector_};
  const mlg_call call{"axpby", arguments.data(), 3, attributes_.data(), 3};
  void* prepared = nullptr;
  std::size_t workspace = 0;
  ASSERT_EQ(table_.prepare(backend_.instance(), &call, &prepared, &workspace), nullptr);
  void* const addresses[] = {nullptr, nullptr, nullptr};
  const mlg_error error = table_.bind(backend_.instance(), prepared, addresses, nullptr);
  ASSERT_NE(error, nullptr);
  EXPECT_TRUE(contains(std::string(error), "argument a is bound to no address")) << error;
  table_.release(backend_.instance(), prepared);
}

mlg_error fill_with_seven(const mlg_launch* launch) {
  std::fill_n(static_cast<float*>(launch->arguments[0].data), launch->arguments[0].shape[0], 7.0f);
  return nullptr;
}

// On an instance of its own: replacing a kernel would be seen by other tests.
TEST(CpuBackendKernels, AddedOnceReplacedOnlyOnRequest) {
  BackendFixture own(backend_under_test(1));
  const mlg_backend_table& table = own.table();
  const mlg_kernel mine{"fill_seven", "cpu", "out y", nullptr, nullptr, fill_with_seven, nullptr};
  mlg_kernel other = mine;
  other.backend = "cuda";
  other.name = "for_another_backend";
  ASSERT_EQ(table.add_kernels(own.instance(), &mine, 1, 0), nullptr);
  ASSERT_EQ(table.add_kernels(own.instance(), &other, 1, 0), nullptr);
  const KernelCall call = kernel_call("fill_seven", "y", {kVector});
  EXPECT_EQ(own.run(call).written.at("y").values, (std::vector<double>{7, 7, 7, 7}));
  EXPECT_EQ(own.refusal(kernel_call("for_another_backend", "", {})).empty(), false);

  const mlg_error twice = table.add_kernels(own.instance(), &mine, 1, 0);
  ASSERT_NE(twice, nullptr);
  EXPECT_TRUE(contains(std::string(twice), "kernel fill_seven exists already")) << twice;

  mlg_kernel replacement = mine;
  replacement.name = "axpby";
  ASSERT_EQ(table.add_kernels(own.instance(), &replacement, 1, 1), nullptr);
  EXPECT_EQ(own.signature("axpby").arguments.size(), 1u);
}

TEST_F(CpuBackend, MemoryIsAlignedZeroedAndCopied) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{1000}, std::size_t{5} << 20}) {
    void* device = nullptr;
    ASSERT_EQ(table_.allocate(backend_.instance(), bytes, &device), nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(device) % 256, 0u);
    std::vector<unsigned char> host(bytes, 1), back(bytes, 2);
    ASSERT_EQ(table_.download(backend_.instance(), host.data(), device, bytes), nullptr);
    EXPECT_EQ(host, std::vector<unsigned char>(bytes, 0));
    for (std::size_t i = 0; i < bytes; ++i) host[i] = static_cast<unsigned char>(i * 31 + 7);
    ASSERT_EQ(table_.upload(backend_.instance(), device, host.data(), bytes), nullptr);
    ASSERT_EQ(table_.download(backend_.instance(), back.data(), device, bytes), nullptr);
    EXPECT_EQ(back, host);
    ASSERT_EQ(table_.zero(backend_.instance(), device, bytes), nullptr);
    EXPECT_EQ(std::memcmp(device, std::vector<unsigned char>(bytes, 0).data(), bytes), 0);
    table_.free(backend_.instance(), device);
  }
}

TEST_F(CpuBackend, MoreMemoryThanThereIsGivesASentence) {
  void* device = nullptr;
  const mlg_error error = table_.allocate(backend_.instance(), std::size_t{1} << 60, &device);
  ASSERT_NE(error, nullptr);
  EXPECT_TRUE(contains(std::string(error), "cannot allocate 1152921504606846976 bytes")) << error;
}

TEST_F(CpuBackend, TellsItsMachine) {
  mlg_device_info info{};
  ASSERT_EQ(table_.info(backend_.instance(), &info), nullptr);
  EXPECT_EQ(info.threads, 2);
  EXPECT_EQ(info.computes, 1);
  EXPECT_GT(info.memory_bytes, std::uint64_t{1} << 20);
  EXPECT_TRUE(contains(std::string(info.description), "2 threads")) << info.description;
}

}  // namespace
}  // namespace mulligan::kernel_test::cpu_backend_test
