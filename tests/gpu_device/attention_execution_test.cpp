// What happens when cuDNN does not execute a plan that it made: the run ends with a sentence, or, where a key
// asks for it, the own kernel computes the call.
#include <algorithm>

#include "tests/gpu_device/stub_device.h"
#include "tests/kernels/backend_fixture.h"
#include "tests/support/sentence.h"

namespace mulligan::kernel_test {

// The harness asks for them where a test is run against several backends; none is here.
BackendUnderTest backend_under_test(int) {
  return {};
}
BackendUnderTest reference_under_test() {
  return {};
}

}  // namespace mulligan::kernel_test

namespace mulligan::cuda::attention_execution_test {
namespace {

using namespace kernel_test;

KernelCall attention(const std::vector<double>& boundaries) {
  const auto tokens = static_cast<std::int64_t>(boundaries.back());
  const Array q{MLG_BF16, {tokens, 1, 16}, std::vector<double>(static_cast<std::size_t>(tokens * 16), 1)},
      cu{MLG_I32, {static_cast<std::int64_t>(boundaries.size())}, boundaries};
  return kernel_call("attention_fwd", "q k v cu_seqlens o lse",
                     {q, q, q, cu, {MLG_BF16, q.shape, {}}, {MLG_F32, {tokens, 1}, {}}},
                     {{"softmax_scale", 0.25}});
}

KernelCall call() {
  return attention({0, 40, 100});
}

// One token, then two, and so on: documents that are not equally long.
KernelCall short_documents(std::int64_t count) {
  std::vector<double> boundaries{0};
  for (std::int64_t i = 0; i < count; ++i)
    boundaries.push_back(boundaries.back() + static_cast<double>(1 + i % 2));
  return attention(boundaries);
}

class AttentionExecution : public StubDevice {
 protected:
  static BackendUnderTest gpu() {
    return {plugin_file("cuda"), "", {{"device", "\"gpu\""}, {"cache", "\"/dev/null/none\""}}, false};
  }
};

constexpr const char* kFailure =
    "cuDNN 9.19.0 does not execute bf16 attention, forward, of 100 tokens in up to 16 rows of up to 2048, 1 "
    "heads over 1 of width 16: CUDNN_STATUS_EXECUTION_FAILED (the stub was told to)";

TEST_F(AttentionExecution, AFailureEndsTheRunWithASentence) {
  BackendFixture backend(gpu());
  backend.run(call());
  EXPECT_EQ(stub().executions, 1);
  EXPECT_EQ(stub().launches, 1);  // rows, as the boundaries came
  stub().execution_fails = true;
  EXPECT_EQ(
      said_by([&] { backend.run(call()); }),
      std::string(kFailure) + "; set backend.attention = \"own\" to compute attention by the own kernel");
  EXPECT_EQ(stub().launches, 2);  // rows again, and no kernel in its place
}

// A plan may take more workspace than was reserved before it was known.
TEST_F(AttentionExecution, APlanGetsTheWorkspaceThatItAsksFor) {
  std::vector<std::string> log;
  stub().plan_workspace = 64 << 20;
  BackendFixture backend(gpu(), &log);
  for (int twice = 0; twice < 2; ++twice) backend.run(call());
  EXPECT_EQ(stub().violation, "");
  EXPECT_EQ(stub().executions, 2) << "by the library";
  EXPECT_EQ(std::ranges::count_if(
                log,
                [](const std::string& line) {
                  return line.find("its plan takes 67108864 bytes of workspace, more than was reserved") !=
                         line.npos;
                }),
            1);
}

// The own kernel's step is ten times as long.
TEST_F(AttentionExecution, ShortDocumentsAreTheLibrarys) {
  BackendUnderTest required = gpu();
  required.keys["require_library"] = "true";
  BackendFixture backend(required);
  for (const std::int64_t count : {40, 3000}) {
    const int before = stub().executions;
    backend.run(short_documents(count));
    EXPECT_EQ(stub().executions, before + 1) << count;
  }
  EXPECT_TRUE(contains(said_by([&] { backend.run(short_documents(33000)); }),
                       "the device's library is asked for at most 32,768 segments; this run requires"));
}

// Where a library is required, its absence is told before anything is trained.
TEST_F(AttentionExecution, ARequiredLibraryThatIsTooOldIsRefused) {
  stub().cudnn_version = 91701;
  BackendUnderTest required = gpu();
  required.keys["require_library"] = "true";
  BackendFixture backend(required);
  const std::string refusal = said_by([&] { backend.run(call()); });
  EXPECT_TRUE(contains(refusal,
                       "; this run requires the device's library of attention (run.require_libraries",
                       "pip install"));
  EXPECT_EQ(stub().launches, 0);
}

}  // namespace
}  // namespace mulligan::cuda::attention_execution_test
