// A compiled kernel on the cuda backend's devices: the compile device takes it, with every check of its
// calls; the emulated one says that it cannot run it.
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <string>

#include "framework/plugin/backend.h"
#include "tests/support/nvrtc.h"
#include "tests/support/plugins.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/sentence.h"

namespace mulligan::triton_backend_test {
namespace {

constexpr const char* kPtx = R"(.version 8.4
.target sm_90a
.address_size 64
.visible .entry fused(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d, .param .f32 e, .param .u32 f)
.reqntid 128
{ ret; }
)";

constexpr const char* kDescription = R"({"name": "fused", "num_warps": 4, "shared": 0,
  "target": {"backend": "cuda", "arch": 90, "warp_size": 32},
  "mulligan": {"kernel": "softcap_ce_fwd", "grid": ["logits.shape[0]"], "parameters": [
    {"name": "logits", "type": "*bf16"}, {"name": "targets", "type": "*i32"},
    {"name": "token_loss", "type": "*fp32"}, {"name": "lse", "type": "*fp32"},
    {"name": "softcap", "type": "fp32"}, {"name": "v", "type": "i32", "extent": "logits.shape[1]"}]}})";

class TritonBackend : public ::testing::Test {
 protected:
  // A cuda backend with the compiled kernel asked for before the plugin brings the one that it replaces.
  std::unique_ptr<Backend> make(const std::string& keys) {
    std::ofstream(folder_ / "fused.ptx") << kPtx;
    std::ofstream(folder_ / "fused.json") << kDescription;
    auto backend = make_plugin<Backend>(MLG_BACKEND, "cuda", keys);
    backend->replace_kernel("softcap_ce_fwd", (folder_ / "fused.ptx").string(), "run.toml:7");
    backend->add_kernels(*test_plugin_host().load(MLG_LOSS, "softcap_ce"));
    return backend;
  }
  // The sentence that refuses the call; empty when it is taken.
  static std::string refusal(Backend& backend, mlg_dtype logits, std::int64_t rows_of_targets = 8) {
    const std::array<mlg_tensor, 4> tensors = {mlg_tensor{nullptr, logits, 2, {8, 64, 1, 1}},
                                               {nullptr, MLG_I32, 1, {rows_of_targets, 1, 1, 1}},
                                               {nullptr, MLG_F32, 1, {8, 1, 1, 1}},
                                               {nullptr, MLG_F32, 1, {8, 1, 1, 1}}};
    const mlg_attribute softcap{"softcap", 30};
    const mlg_call call{"softcap_ce_fwd", tensors.data(), 4, &softcap, 1};
    return refusal_of(ExitCode::bad_configuration, [&] { backend.prepare(call); });
  }

  mulligan::test_support::ScratchFolder folder_;
};

TEST_F(TritonBackend, TheEmulatedDeviceSaysThatItCannotRunIt) {
  const std::string sentence = refusal(*make("device = \"emulated\""), MLG_BF16);
  EXPECT_TRUE(contains(sentence, "run.toml:7", "exists as GPU code only"));
}

TEST_F(TritonBackend, TheCompileDeviceTakesItAndChecksItsCalls) {
  std::unique_ptr<Backend> backend;
  try {
    backend = make("device = \"compile\"\ncache = \"" + folder_.path().string() + "\"");
  } catch (const Error& error) {
    if (says_no_nvrtc(error.what())) GTEST_SKIP() << "needs CUDA's NVRTC: " << error.what();
    throw;
  }
  EXPECT_EQ(refusal(*backend, MLG_BF16), "");
  EXPECT_FALSE(backend->repeats()) << "of foreign code nothing is known";
  const std::string dtype = refusal(*backend, MLG_F32);
  EXPECT_TRUE(contains(dtype, "takes logits as *bf16, but here that is *fp32"));
  // What the kernel that it replaces demands still holds.
  const std::string shape = refusal(*backend, MLG_BF16, 7);
  EXPECT_TRUE(contains(shape, "targets must have shape"));
}

TEST_F(TritonBackend, CodeForAnotherGpuIsRefusedWhenThePluginBringsTheKernel) {
  try {
    make("device = \"compile\"\narchitecture = \"sm_80\"\ncache = \"" + folder_.path().string() + "\"");
    FAIL() << "taken";
  } catch (const Error& error) {
    const std::string sentence = error.what();
    if (says_no_nvrtc(sentence)) GTEST_SKIP() << "needs CUDA's NVRTC: " << sentence;
    EXPECT_EQ(error.code(), ExitCode::bad_configuration);
    EXPECT_TRUE(contains(sentence, "compiled for sm_90a, but the device is sm_80"));
  }
}

}  // namespace
}  // namespace mulligan::triton_backend_test
