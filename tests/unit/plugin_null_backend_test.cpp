// The null backend: any size, any kernel, no memory.
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <array>
#include <cstdint>

#include "framework/plugin/backend.h"
#include "tests/support/plugins.h"

namespace mulligan::plugin_null_backend_test {
namespace {

std::unique_ptr<Backend> make() {
  return make_plugin<Backend>(PluginKind::backend, "null");
}

TEST(NullBackend, SaysThatItComputesNothing) {
  const Backend::Info info = make()->info();
  EXPECT_FALSE(info.computes);
  EXPECT_FALSE(info.description.empty());
}

TEST(NullBackend, HandsOutMoreThanAnyMachineHas) {
  const auto backend = make();
  constexpr std::size_t kBytes = std::size_t{80} << 30;
  DeviceBuffer first = backend->allocate(kBytes), second = backend->allocate(kBytes),
               none = backend->allocate(0);
  const auto a = reinterpret_cast<std::uintptr_t>(first.address()),
             b = reinterpret_cast<std::uintptr_t>(second.address());
  EXPECT_NE(a, 0u);
  EXPECT_EQ(a % 256, 0u);
  EXPECT_EQ(b % 256, 0u);
  EXPECT_TRUE(a + kBytes <= b || b + kBytes <= a) << "buffers must not overlap";
  EXPECT_EQ(none.address(), nullptr);
  backend->zero(first.address(), kBytes);
  backend->copy(second.address(), first.address(), kBytes);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  EXPECT_LT(usage.ru_maxrss, 4 << 20) << "kilobytes resident: nothing of the 160 GB exists";
}

TEST(NullBackend, TransfersLeaveDefinedResults) {
  const auto backend = make();
  DeviceBuffer buffer = backend->allocate(16);
  std::array<float, 4> values{1, 2, 3, 4};
  backend->upload(buffer.address(), values.data(), 16);
  backend->download(values.data(), buffer.address(), 16);
  EXPECT_EQ(values, (std::array<float, 4>{0, 0, 0, 0}));
}

TEST(NullBackend, PreparesBindsAndRunsAnyKernel) {
  const auto backend = make();
  EXPECT_EQ(backend->kernel_at(0), nullptr);
  const mlg_tensor x{nullptr, MLG_F32, 2, {1 << 20, 1 << 14, 1, 1}};
  const mlg_attribute scale{"scale", 2};
  const mlg_call call{"a_kernel_of_any_name", &x, 1, &scale, 1};
  PreparedCall prepared = backend->prepare(call);
  EXPECT_EQ(prepared.workspace_bytes(), 0u);
  void* handle = prepared.handle();
  EXPECT_THROW(backend->run({&handle, 1}), Error) << "a call must be bound first";
  DeviceBuffer buffer = backend->allocate(std::size_t{1} << 36);
  void* address = buffer.address();
  prepared.bind(&address, nullptr);
  backend->run({&handle, 1});
  backend->synchronize();
}

}  // namespace
}  // namespace mulligan::plugin_null_backend_test
