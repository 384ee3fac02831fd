// What the log has after an error that stays: the error itself, and at most one line of what is released then.

#include "tests/gpu_device/stub_device.h"
#include "tests/kernels/backend_fixture.h"

namespace mulligan::cuda::lost_device_test {
namespace {

using namespace kernel_test;

// Prepared and bound calls of a run, with the memory that they work on.
class LostDevice : public StubDevice {
 protected:
  static constexpr int kCalls = 200;

  LostDevice()
      : backend_({plugin_file("cuda"), "", {{"device", "\"gpu\""}, {"cache", "\"/dev/null/none\""}}, false},
                 &log_) {
    const mlg_tensor x{nullptr, MLG_F32, 1, {64, 1, 1, 1}}, y{nullptr, MLG_BF16, 1, {64, 1, 1, 1}};
    const mlg_tensor tensors[] = {x, y};
    const mlg_call call{"cast", tensors, 2, nullptr, 0};
    throw_error(table().allocate(backend_.instance(), 64 * sizeof(float), &memory_));
    void* const addresses[] = {memory_, memory_};
    for (void*& prepared : calls_) {
      std::size_t workspace = 0;
      throw_error(table().prepare(backend_.instance(), &call, &prepared, &workspace));
      throw_error(table().bind(backend_.instance(), prepared, addresses, nullptr));
    }
    log_.clear();
    stub().captures = true;
  }
  const mlg_backend_table& table() const { return backend_.table(); }
  static void throw_error(mlg_error error) {
    if (error) throw std::runtime_error(error);
  }
  void release_all() {
    for (void* prepared : calls_) table().release(backend_.instance(), prepared);
    table().free(backend_.instance(), memory_);
  }
  void run_twice() {  // the second time as a graph
    for (int time = 0; time < 2; ++time) throw_error(table().run(backend_.instance(), calls_, kCalls));
  }

  std::vector<std::string> log_;
  BackendFixture backend_;
  void* calls_[kCalls] = {};
  void* memory_ = nullptr;
};

TEST_F(LostDevice, TheErrorThatWasThrownIsTheOnlyOne) {
  run_twice();
  stub_violates("a kernel touched what is not its own");
  EXPECT_NE(said_by([&] { throw_error(table().synchronize(backend_.instance())); }).find("CUDA error 700"),
            std::string::npos);
  release_all();
  EXPECT_EQ(log_, std::vector<std::string>());
}

TEST_F(LostDevice, AnErrorThatAReleaseFindsIsLoggedOnce) {
  run_twice();
  stub_violates("a kernel touched what is not its own");
  release_all();
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_NE(log_[0].find("while a kernel call was released: cuStreamSynchronize failed"), std::string::npos)
      << log_[0];
}

}  // namespace
}  // namespace mulligan::cuda::lost_device_test
