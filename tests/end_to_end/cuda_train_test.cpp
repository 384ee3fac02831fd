// Whole runs of the cuda backend, against the same runs on the cpu backend: the model's logits, training step
// by step, evaluation, quantisation, test-time training, memory. On the emulated device, or with
// MULLIGAN_TEST_DEVICE=gpu on a GPU.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "framework/run/run_plugins.h"
#include "tests/end_to_end/tiny_ttt.h"
#include "tests/support/long_tests.h"
#include "tests/support/plugins.h"
#include "tests/support/sentence.h"
#include "tests/support/test_device.h"
#include "tools/cost/dry_run.h"

namespace mulligan::end_to_end::cuda_train_test {
namespace {

const std::vector<std::string> kDevice = {"backend.plugin=cuda", "backend.device=" + test_device()};
const std::vector<std::string> kSmall = {"train.steps=20", "train.tokens_per_step=128", "train.log_every=20",
                                         "train.clip_norm=0.5", "ema.decay=0.9"};

// One prepared corpus and the two trained runs for all tests of this file.
class CudaRun : public testing::Test {
 protected:
  static TinyRun& tiny() {
    static TinyRun run(long_tests() ? 20 : 6);
    return run;
  }
  static const RunResult& on_cpu() {
    static const RunResult result = tiny().train(kSmall);
    return result;
  }
  static const RunResult& on_cuda() {
    static const RunResult result = tiny().train(with(kSmall, kDevice));
    return result;
  }
};

// f32 sums in another order: single steps differ by rounding, which twenty steps of training amplify.
void expect_near_losses(const RunResult& cuda, const RunResult& cpu) {
  ASSERT_EQ(cuda.step_loss_nats.size(), cpu.step_loss_nats.size());
  for (std::size_t step = 0; step < cpu.step_loss_nats.size(); ++step) {
    const double expected = cpu.step_loss_nats[step];
    EXPECT_NEAR(cuda.step_loss_nats[step], expected, expected * (step == 0 ? 2e-6 : 2e-4)) << "step " << step;
  }
}

TEST_F(CudaRun, TrainsLikeTheCpuBackendStepByStep) {
  ASSERT_EQ(on_cpu().step_loss_nats.size(), 20u);
  EXPECT_LT(on_cuda().step_loss_nats.back(), on_cuda().step_loss_nats.front());
  expect_near_losses(on_cuda(), on_cpu());
  ASSERT_TRUE(on_cuda().validation.has_value());
  EXPECT_EQ(on_cuda().validation->tokens, on_cpu().validation->tokens);
  EXPECT_NEAR(on_cuda().validation->val_bpb, on_cpu().validation->val_bpb, 1e-3);
}

TEST_F(CudaRun, TakesTheMemoryThatWasPlanned) {
  LoadedConfig loaded = tiny().config(with(kSmall, kDevice));
  EXPECT_EQ(dry_run(loaded, test_plugin_host()).bytes, on_cuda().peak_device_memory_bytes);
}

const std::vector<std::string> kPlain = {"run.fused_kernels=false"};

// What a device makes, it makes before the training clock; graphs are captured when a list
// of calls comes again.
TEST_F(CudaRun, CountsWhatItMakesBeforeAndOnTheClock) {
  const auto made = result_of(on_cuda().directory).at("made_on_device");
  EXPECT_GT(made.at("kernel_modules").at("before_clock"), 20);
  EXPECT_EQ(made.at("kernel_modules").at("on_clock"), 0);
  EXPECT_EQ(made.at("attention_plans").at("on_clock"), 0);
  EXPECT_GT(made.at("graphs_captured").at("on_clock"), 0);
  EXPECT_TRUE(made.contains("products_measured"));
  EXPECT_FALSE(result_of(on_cpu().directory).contains("made_on_device")) << "it counts nothing";
}

TEST_F(CudaRun, WithPlainCallsTakesTheMemoryThatWasPlannedForThem) {
  // Four steps: two of each form of the model, whose depth recurrence begins half way.
  const std::vector<std::string> few =
      with(with(kSmall, kDevice), {long_tests() ? "train.steps=20" : "train.steps=4"});
  const std::vector<std::string> keys = with(few, kPlain);
  LoadedConfig loaded = tiny().config(keys);
  const RunResult plain = tiny().train(keys);
  EXPECT_EQ(dry_run(loaded, test_plugin_host()).bytes, plain.peak_device_memory_bytes);
  const double fused = long_tests() ? on_cuda().final_loss_nats
                                    : tiny().train(with(few, {"data.validation=''"})).final_loss_nats;
  EXPECT_NEAR(plain.final_loss_nats, fused, 2e-3);
}

TEST_F(CudaRun, SameRunTwiceIsTheSameToTheBitAlsoWithoutGraphs) {
  const std::vector<std::string> few =
      with(kDevice, {"train.steps=3", "train.tokens_per_step=128", "data.validation=''"});
  const RunResult first = tiny().train(few);
  const RunResult again = tiny().train(with(few, {"backend.emulated_order=reverse"}));
  const RunResult eager = tiny().train(with(few, {"backend.graphs=false"}));
  EXPECT_EQ(first.step_loss_nats, again.step_loss_nats);
  EXPECT_EQ(first.step_loss_nats, eager.step_loss_nats);
  const auto weights = [](const RunResult& run) { return result_of(run.directory).at("weights_sha256"); };
  EXPECT_EQ(weights(first), weights(again)) << "another order of threads";
  EXPECT_EQ(weights(first), weights(eager)) << "without graphs";
}

TEST_F(CudaRun, TrainsInBf16) {
  const RunResult bf16 = tiny().train(with(kDevice, {"train.steps=6", "train.tokens_per_step=128",
                                                     "train.compute_dtype=bf16", "data.validation=''"}));
  EXPECT_NEAR(bf16.step_loss_nats.front(), on_cpu().step_loss_nats.front(), 2e-2);
  EXPECT_LT(bf16.step_loss_nats.back(), bf16.step_loss_nats.front());
}

// 16-bit projections in fp32 arithmetic: the cpu backend's losses to fp32's rounding, which bf16's are not.
TEST_F(CudaRun, TrainsWithLayerCastLikeTheCpuBackend) {
  const std::vector<std::string> keys = {"train.steps=3", "train.tokens_per_step=128", "train.layercast=bf16",
                                         "data.validation=''"};
  const RunResult cpu = tiny().train(keys), cuda = tiny().train(with(kDevice, keys));
  expect_near_losses(cuda, cpu);
}

// An artifact quantised on one backend is scored alike on both.
TEST_F(CudaRun, QuantisesAndScoresAnArtifact) {
  const std::filesystem::path output = tiny().folder() / "cuda.mulligan";
  quantize_run(on_cuda(), output, {"quantize.calibration_batches=2", "quantize.calibration_rows=2"});
  const EvalResult cuda = evaluate_artifact(output, {}, test_plugin_host(), {nullptr});
  const EvalResult cpu = evaluate_artifact(output, {"backend.plugin=cpu"}, test_plugin_host(), {nullptr});
  EXPECT_NEAR(cuda.val_bpb, cpu.val_bpb, 1e-4);
}

// Windows of two chunks: a chunk is scored after one that was trained on.
TEST_F(CudaRun, TestTimeTraining) {
  const Overrides keys = with(
      ttt_keys, {"train.steps=20", "ttt.batch_documents=2", "ttt.chunk_tokens=16", "ttt.prefix_documents=3",
                 "ttt.phases=2", long_tests() ? "ttt.context_tokens=64" : "ttt.context_tokens=32",
                 long_tests() ? "ttt.document_fraction=0.3" : "ttt.document_fraction=0.34"});
  const auto run = [&](const std::vector<std::string>& overrides, const std::string& name) {
    return adapt(tiny().config(overrides), on_cpu().directory / "weights.safetensors",
                 tiny().folder() / name);
  };
  const TttResult cpu = run(keys, "ttt_cpu"), cuda = run(with(keys, kDevice), "ttt_cuda");
  EXPECT_EQ(cuda.with.tokens, cpu.with.tokens);
  EXPECT_NEAR(cuda.without.value().val_bpb, cpu.without.value().val_bpb, 1e-4);
  EXPECT_NEAR(cuda.with.val_bpb, cpu.with.val_bpb, 1e-3);
  const std::vector<std::string> plain_keys = with(with(keys, kDevice), kPlain);
  const TttResult plain = run(plain_keys, "ttt_plain");
  EXPECT_NEAR(plain.with.val_bpb, cuda.with.val_bpb, 1e-3);
  LoadedConfig plain_config = tiny().config(plain_keys), config = tiny().config(with(keys, kDevice));
  EXPECT_EQ(plan_ttt_memory(plain_config, test_plugin_host()).bytes, plain.peak_device_memory_bytes);
  EXPECT_EQ(plan_ttt_memory(config, test_plugin_host()).bytes, cuda.peak_device_memory_bytes);
}

// The plugin loads anywhere; that there is no GPU is said when one is asked for.
TEST(CudaBackend, WithoutADriverTheErrorIsOneSentence) {
  if (void* driver = dlopen("libcuda.so.1", RTLD_NOW)) {
    dlclose(driver);
    GTEST_SKIP() << "the sentence about a missing driver: this machine has one";
  }
  const std::string what = sentence_of([&] {
    LoadedConfig loaded = TinyRun::config_without_data({"backend.plugin=cuda"});
    resolve_run_plugins(loaded, test_plugin_host());
    make_run_plugins(loaded, test_plugin_host());
  });
  EXPECT_TRUE(what.find("NVIDIA's driver was not found (libcuda.so.1)") != what.npos ||
              what.find("built without CUDA") != what.npos)
      << what;
  EXPECT_EQ(what.find('\n'), what.npos);
}

}  // namespace
}  // namespace mulligan::end_to_end::cuda_train_test
