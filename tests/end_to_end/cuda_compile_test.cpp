// Every CUDA kernel of a run compiles, for both supported generations of GPUs, without spilling a register.
// Needs NVRTC, but no GPU and no driver: the cuda backend's device "compile".
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <regex>
#include <set>

#include "framework/core/error.h"
#include "framework/eval/evaluator.h"
#include "framework/ranks/communicator.h"
#include "framework/step/engine.h"
#include "tests/end_to_end/tiny_run.h"
#include "tests/support/nvrtc.h"
#include "tests/support/plugins.h"
#include "tests/support/small_config.h"

namespace mulligan::end_to_end::cuda_compile_test {
namespace {

struct Compiled {
  std::string kernel, function;
  int registers = 0, shared_bytes = 0, spilled_bytes = 0, stack_bytes = 0;
};
std::vector<Compiled> compiled;

// The line that the device writes for each function (compile_device.cpp).
void read_line(int, std::string_view line) {
  static const std::regex pattern(
      R"(compiled (\S+): (.+) for (\S+), registers (\d+), shared bytes (\d+), spilled bytes (\d+), stack bytes (\d+))");
  std::cmatch match;
  if (!std::regex_match(line.data(), line.data() + line.size(), match, pattern)) return;
  compiled.push_back({match[1], match[2], std::stoi(match[4]), std::stoi(match[5]), std::stoi(match[6]),
                      std::stoi(match[7])});
}

// Builds all programs of a training run and an evaluation; returns the kernels that the backend
// knows. Throws Error.
std::set<std::string> compile_run(LoadedConfig loaded) {
  PluginHost& host = test_plugin_host();
  resolve_run_plugins(loaded, host);
  const RunConfig& config = loaded.config;
  const RunPlugins plugins = make_run_plugins(loaded, host);
  const std::vector<PlannedParameter> parameters = plan_parameters(config);
  OptimizerGroups groups(config, plugins, parameters);
  const auto communicator = make_self_communicator();
  const TrainingEngine engine(config, "backend", plugins, parameters, groups, *communicator, 4);
  EvaluatorOptions options;
  options.eval = config.eval;
  options.layer_order = scored_order(config.model);
  const Program evaluate(
      *plugins.backend,
      Evaluator::build(config.model, layouts_of(parameters), options, FusedKernels(*plugins.backend)),
      "evaluate");
  Graph draws;  // of test-time training
  draws.call(
      "uniform_draws",
      {draws.external("key", TensorType(MLG_I32, {4})), draws.external("values", TensorType(MLG_F32, {64}))},
      {{"bound", 0.5}});
  for (int mode = 1; mode <= 5; ++mode) {
    const TensorType values(MLG_F32, {64}), word(MLG_I32, {1});
    draws.call("gradient_noise",
               {draws.external("gradient", values), draws.external("key", TensorType(MLG_I32, {4})),
                draws.external("step", word), draws.external("sigma", TensorType(MLG_F32, {1})),
                draws.external("squares", TensorType(MLG_F64, {1})), draws.external("noise", values)},
               {{"mode", static_cast<double>(mode)}, {"first", 0}, {"elements", 64}});
  }
  // The gradients of the asymmetric caps, which training does without.
  const TensorType logits(config.train.compute_dtype, {16, config.model.vocabulary}), cap(MLG_F32, {1});
  draws.call("asymmetric_softcap_bwd",
             {draws.external("logits", logits), draws.external("positive", cap),
              draws.external("negative", cap), draws.external("dy", logits), draws.external("dz", logits),
              draws.external("dpositive", cap), draws.external("dnegative", cap)},
             {{"accumulate_dz", 0}});
  const Program draw(*plugins.backend, std::move(draws), "draws");
  plugins.backend->synchronize();  // functions are compiled in parallel; throws where one is refused
  std::set<std::string> kernels;
  for (std::uint32_t i = 0; const mlg_kernel* kernel = plugins.backend->kernel_at(i); ++i) {
    if (kernel->source) kernels.insert(kernel->name);
  }
  return kernels;
}

// Of the shape of Qwen2.5-0.5B, one layer of it.
const Overrides qwen2 = {"model.family=qwen2",   "model.vocabulary=151936", "model.layers=1",
                         "model.width=896",      "model.heads=14",          "model.kv_heads=2",
                         "model.mlp_hidden=4864"};

class CudaCompile : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    compiled.clear();
    set_plugin_log_sink(read_line);
  }
  void TearDown() override { set_plugin_log_sink(nullptr); }

  std::vector<std::string> device() const {
    return {"backend.plugin=cuda", "backend.device=compile",
            std::string("backend.architecture=") + GetParam(),
            std::string("backend.cache='") + MULLIGAN_CUDA_CACHE + "'"};
  }
};

TEST_P(CudaCompile, NoKernelSpills) {
  const auto record = [&](const Overrides& more, const char* name = "records/pr1886") {
    return compile_run(
        load_run_config(fmt::format("{}/configs/{}.toml", MULLIGAN_SOURCE_DIR, name), with(device(), more)));
  };
  const auto tiny = [&](const Overrides& more) {
    return compile_run(TinyRun::config_without_data(with(device(), more)));
  };
  const Overrides others = {"loss.plugin=cross_entropy", "optimizer.rest.plugin=sgd",
                            "optimizer.rest.lr=0.01", "ema.decay=0.9"};
  std::set<std::string> missing;
  try {
    missing = record({});
    // One sum over rows, which 27 launches with different constants once made as many functions.
    EXPECT_EQ(std::ranges::count(compiled, "add_column_sums", &Compiled::function), 1);
    std::printf("%zu functions for the record's training and evaluation\n", compiled.size());
    missing.merge(tiny(others));
    // What the fused kernels stand in for.
    record({"run.fused_kernels=false", "model.attention.stabilize=repeat_max"});
    tiny(with(others, {"run.fused_kernels=false"}));
    record({}, "records/2014");
    record({"train.compute_dtype=fp16", "run.require_libraries=false"});  // cuDNN has bf16 alone
    record({"run.determinism=batch"});
    tiny({"optimizer.rest.state_dtype=bf16", "optimizer.rest.stochastic_rounding=true", "ema.decay=0.9",
          "model.attention.normalizer=rounded", "model.attention.output_rounding=sums"});
    for (const char* storage : {"bf16", "fp16"}) tiny({std::string("train.layercast=") + storage});
    for (const std::string dtype : {"bf16", "fp32"}) {
      const Overrides computed = {"train.compute_dtype=" + dtype};
      // Attention to both sides.
      tiny(with(computed, {"train.fp8_head=true", "model.masking.share=0.15"}));
      // Rows that the registers of a block do not hold at once.
      tiny(with(computed, {"model.width=16384", "model.heads=128", "model.kv_heads=64"}));
      compile_run(small_config(with(with(device(), computed), qwen2)));
      record(with(computed, {"optimizer.matrices.norm=schatten4"}), "arena/small");
    }
  } catch (const Error& error) {
    if (says_no_nvrtc(error.what())) GTEST_SKIP() << "compilation of the CUDA kernels: " << error.what();
    throw;
  }
  std::printf("%-60s %9s %9s %9s %9s\n", GetParam(), "registers", "shared", "spilled", "stack");
  std::set<std::string> lines;
  for (const Compiled& one : compiled) {
    missing.erase(one.kernel);
    char line[256];
    std::snprintf(line, sizeof line, "%-60s %9d %9d %9d %9d", one.function.c_str(), one.registers,
                  one.shared_bytes, one.spilled_bytes, one.stack_bytes);
    if (lines.insert(line).second) std::puts(line);
    EXPECT_EQ(one.spilled_bytes, 0) << one.function;
    EXPECT_EQ(one.stack_bytes, 0) << one.function << " keeps an array in local memory";
    EXPECT_GT(one.registers, 0) << one.function << ": ptxas said nothing";
  }
  for (const std::string& kernel : missing) ADD_FAILURE() << kernel << " was not compiled by either run";
}

INSTANTIATE_TEST_SUITE_P(Architectures, CudaCompile, testing::Values("sm_80", "sm_90a"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace mulligan::end_to_end::cuda_compile_test
