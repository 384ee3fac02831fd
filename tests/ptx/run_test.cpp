// Training steps and test-time training of a tiny model. Its kernels run as NVRTC's PTX. The results are compared with the cpu
// backend's, in the tolerances of the emulated device (tests/end_to_end/cuda_train_test.cpp).
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "tests/end_to_end/tiny_ttt.h"
#include "tests/support/nvrtc.h"
#include "tests/support/plugins.h"

namespace mulligan::end_to_end {
namespace {

// The first plugin of a name that is loaded is the one of that name.
const std::vector<std::string> kDevice = {"backend.plugin=cuda", "backend.device=emulated"};
const std::vector<std::string> kFew = {"train.steps=2", "train.tokens_per_step=64",
                                       "train.sequence_length=32", "eval.sequence_length=32",
                                       "data.validation=''"};

class PtxRun : public testing::Test {
 protected:
  static void SetUpTestSuite() { test_plugin_host().load(MLG_BACKEND, "cuda", MULLIGAN_PTX_PLUGIN); }
  static TinyRun& tiny() {
    static TinyRun run(6);
    return run;
  }
  void SetUp() override {
    try {
      make_plugin<Backend>(MLG_BACKEND, "cuda", "device = \"emulated\"");
    } catch (const Error& error) {
      if (says_no_nvrtc(error.what())) GTEST_SKIP() << "runs of NVRTC's PTX: " << error.what();
      throw;
    }
  }
};

// How many steps a run has made in each phase, which are named after their order of layers.
std::map<std::string, int> steps_by_order(const RunResult& run) {
  std::map<std::string, int> steps;
  const auto result = result_of(run.directory);
  for (const auto& [phase, loss] : result.at("train_loss").at("train_loss_phase_nats").items())
    steps[phase] = loss.at("steps_counted");
  return steps;
}
const std::map<std::string, int> kOneOfEach = {{"plain", 1}, {"looped", 1}};

// The record's step in small, once in the plain order of layers and once in the looped one.
TEST_F(PtxRun, TrainsAStepInThePlainOrderAndOneInTheLoopedOrderLikeTheCpuBackend) {
  const RunResult cpu = tiny().train(kFew), ptx = tiny().train(with(kFew, kDevice));
  EXPECT_EQ(steps_by_order(cpu), kOneOfEach);
  EXPECT_EQ(steps_by_order(ptx), kOneOfEach);
  const std::vector<double>&expected = cpu.step_loss_nats, &found = ptx.step_loss_nats;
  ASSERT_EQ(found.size(), 2U);
  EXPECT_NEAR(found[0], expected[0], expected[0] * 2e-6) << "the plain order";
  EXPECT_NEAR(found[1], expected[1], expected[1] * 2e-4) << "the looped order";
}

TEST_F(PtxRun, TrainsInBf16InBothOrders) {
  const std::vector<std::string> bf16 = with(kFew, {"train.compute_dtype=bf16"});
  const RunResult cpu = tiny().train(bf16), ptx = tiny().train(with(bf16, kDevice));
  EXPECT_EQ(steps_by_order(ptx), kOneOfEach);
  ASSERT_EQ(ptx.step_loss_nats.size(), 2U);
  for (std::size_t step = 0; step < 2; ++step)
    EXPECT_NEAR(ptx.step_loss_nats[step], cpu.step_loss_nats[step], 2e-2) << "step " << step;
}

TEST_F(PtxRun, AdaptsAtTestTimeLikeTheCpuBackend) {
  const Overrides keys = with(
      ttt_keys, {"train.steps=2", "ttt.batch_documents=2", "ttt.context_tokens=64", "ttt.chunk_tokens=32",
                 "ttt.prefix_documents=1", "ttt.phases=1", "ttt.document_fraction=0.34"});
  const RunResult trained = tiny().train(kFew);
  const auto run = [&](const std::vector<std::string>& overrides, const std::string& name) {
    return adapt(tiny().config(overrides), trained.directory / "weights.safetensors", tiny().folder() / name);
  };
  const TttResult cpu = run(keys, "ttt_cpu"), ptx = run(with(keys, kDevice), "ttt_ptx");
  EXPECT_EQ(ptx.with.tokens, cpu.with.tokens);
  EXPECT_NEAR(ptx.without.value().val_bpb, cpu.without.value().val_bpb, 1e-4);
  EXPECT_NEAR(ptx.with.val_bpb, cpu.with.val_bpb, 1e-3);
}

}  // namespace
}  // namespace mulligan::end_to_end
