// The checks of plugins: each planted flaw fails its own check, and what is sound passes; losses of hidden states.
#include "framework/check/plugin_check.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <thread>

#include "framework/check/allocation_count.h"
#include "framework/check/start_check.h"
#include "framework/graph/program.h"
#include "framework/model/initialise.h"
#include "framework/model/packed_inputs.h"
#include "framework/step/step_graphs.h"
#include "tests/support/built.h"
#include "tests/support/plugins.h"
#include "tests/support/sentence.h"
#include "tests/support/small_config.h"

namespace mulligan::plugin_check_test {
namespace {

PluginHandle flawed(mlg_kind kind, const std::string& name) {
  return test_plugin_host().load(kind, "",
                                 test_support::built("flawed_plugins") / ("mulligan_" + name + ".so"));
}

// What failed, by the lines' names.
std::vector<std::string> failures(const PluginHandle& plugin, const std::vector<std::string>& keys = {}) {
  std::vector<std::string> failed;
  const CheckList list = check_plugin(test_plugin_host(), plugin, keys);
  for (const CheckLine& line : list.lines()) {
    if (!line.problem.empty()) failed.push_back(line.what + ": " + line.problem);
  }
  return failed;
}

// The plugin of this kind that breaks its contract as `how` says.
std::string flawed_of(mlg_kind kind) {
  return kind == MLG_TTT ? "flawed_adapters" : fmt::format("flawed_{}", kind_word(kind));
}
std::vector<std::string> failures(mlg_kind kind, const std::string& how) {
  return failures(flawed(kind, flawed_of(kind)), {"how=" + how});
}

struct Flaw {
  mlg_kind kind;
  std::string how;
  std::string line;  // the beginning of the one line that fails; empty: none does
};

class PluginCheck : public testing::TestWithParam<Flaw> {};

TEST(PluginsToCheck, AFileHasItsPluginsName) {
  PluginHost host({{"a test", test_support::built("bad_plugins")}});
  EXPECT_EQ(plugins_to_check(host, "plain_c").at(0)->name(), "plain_c");
  EXPECT_TRUE(contains(sentence_of(ExitCode::bad_configuration, [&] { plugins_to_check(host, "twin_a"); }),
                       "holds 'twin', and no configuration finds that under this name"));
}

TEST_P(PluginCheck, TheFlawsOwnLineFails) {
  const auto& [kind, how, line] = GetParam();
  if (how == "allocates" && !allocation_count().linked) GTEST_SKIP() << "this build has a malloc of its own";
  const std::vector<std::string> failed = failures(kind, how);
  if (line.empty()) {
    EXPECT_TRUE(failed.empty()) << fmt::format("{}", failed);
    return;
  }
  ASSERT_EQ(failed.size(), 1u) << fmt::format("{}", failed);
  EXPECT_TRUE(failed[0].starts_with(line)) << failed[0];
}

INSTANTIATE_TEST_SUITE_P(
    Flaws, PluginCheck,
    testing::Values(
        Flaw{MLG_LOSS, "not_at_all", ""},
        Flaw{MLG_LOSS, "wrong_gradient", "the gradient of the logits equals finite differences"},
        Flaw{MLG_LOSS, "negative_target", "a negative target gives neither loss nor gradient"},
        Flaw{MLG_LOSS, "order_of_threads", "other numbers of threads give the same bits"},
        Flaw{MLG_LOSS, "allocates", "no allocation on the step path: a kernel allocates"},
        Flaw{MLG_OPTIMIZER, "not_at_all", ""}, Flaw{MLG_OPTIMIZER, "uphill", "descends on a quadratic"},
        Flaw{MLG_OPTIMIZER, "unwritten_scratch",
             "weights and states are written, whatever memory held before"},
        Flaw{MLG_OPTIMIZER, "allocates", "no allocation on the step path"},
        Flaw{MLG_OPTIMIZER, "moves_at_zero", "a rate of zero changes no weight"},
        Flaw{MLG_SCHEDULE, "not_at_all", ""}, Flaw{MLG_SCHEDULE, "momentum", ""},
        Flaw{MLG_SCHEDULE, "impure", "the same progress gives the same rate"},
        Flaw{MLG_SCHEDULE, "allocates", "no allocation on the step path: rate()"}, Flaw{MLG_TTT, "bias", ""},
        Flaw{MLG_TTT, "factor", ""}, Flaw{MLG_TTT, "negative_steps", "plan() is possible"},
        Flaw{MLG_TTT, "nan_weight", "plan() is possible"}, Flaw{MLG_TTT, "impure_plan", "plan() is possible"},
        Flaw{MLG_TTT, "wrong_gradient", "gradients equal finite differences: gradients[0]"},
        Flaw{MLG_TTT, "forgets_output_gradient", "gradients equal finite differences: output_gradient"},
        Flaw{MLG_TRANSFORM, "not_at_all", ""},
        Flaw{MLG_TRANSFORM, "remembers", "no proposal knows its own or a later token"},
        Flaw{MLG_TRANSFORM, "impure", "asking twice changes nothing"}, Flaw{MLG_ENSEMBLE, "not_at_all", ""},
        Flaw{MLG_ENSEMBLE, "unwritten", "members and the reference are written whole and finite"},
        Flaw{MLG_ENSEMBLE, "cut",
             "the same member has the same bits, whatever was made before and however work is cut"},
        Flaw{MLG_ENSEMBLE, "seeded_reference", "the reference depends on no seed"},
        Flaw{MLG_ENSEMBLE, "bytes", "stored bytes are finite, not negative and grow with the weight"},
        Flaw{MLG_WRAPPER, "not_at_all", ""},
        Flaw{MLG_WRAPPER, "misnames", "records what follows an update, with states of the parameter's shape"},
        Flaw{MLG_WRAPPER, "unwritten_scratch", "weights and states are written, whatever memory held before"},
        Flaw{MLG_WRAPPER, "joins", "several parameters as one are done as one by one"},
        Flaw{MLG_QUANTIZER, "not_at_all", ""},
        Flaw{MLG_QUANTIZER, "beyond_bits", "codes lie within their bits"},
        Flaw{MLG_QUANTIZER, "understates", "squared_error is that of the codes"},
        Flaw{MLG_QUANTIZER, "order", "the same bits however the work is cut"}),
    [](const auto& param) { return flawed_of(param.param.kind) + "_" + param.param.how; });

// What a loss says of itself decides what is asked of it.
TEST(PluginCheck, ALossThatIsNoCrossEntropySaysSo) {
  EXPECT_TRUE(failures(flawed(MLG_LOSS, "focal_loss"), {}).empty());
  for (const auto& [plugin, how] : {std::pair{"undeclared_loss", ""}, std::pair{"flawed_loss", "how=bits"}}) {
    const std::vector<std::string> failed =
        failures(flawed(MLG_LOSS, plugin), *how ? std::vector<std::string>{how} : std::vector<std::string>{});
    ASSERT_FALSE(failed.empty()) << plugin;
    EXPECT_TRUE(failed[0].starts_with("it is a cross entropy in nats")) << failed[0];
    EXPECT_TRUE(contains(failed[0], "cross_entropy = false"));
  }
}

// Some flaws break more than one promise: their own line is among those that fail.
TEST(PluginCheck, WhatIsNotWrittenIsFound) {
  const auto fails = [](mlg_kind kind, const std::string& how, const std::string& part) {
    const std::vector<std::string> failed = failures(kind, how);
    for (const std::string& line : failed) {
      if (line.find(part) != line.npos) return;
    }
    ADD_FAILURE() << flawed_of(kind) << " " << how << ": " << fmt::format("{}", failed);
  };
  fails(MLG_LOSS, "no_token_loss",
        "every output is written, whatever memory held before (f32): element 0 of token_loss is not written");
  fails(MLG_LOSS, "half_gradient", "of logits_gradient is not written");
  fails(MLG_LOSS, "differs_in_one", "forward and backward in one are those of the two apart (f32)");
  fails(MLG_OPTIMIZER, "ignores_scale",
        "a fused update is a plain one of scaled gradients, with average and copy");
  fails(MLG_OPTIMIZER, "late_copy",
        "a fused update is a plain one of scaled gradients, with average and copy");
  fails(MLG_OPTIMIZER, "reads_neighbours", "several parameters as one are updated as one by one");
  fails(MLG_TTT, "no_gradient", "of gradients[0] at tap 'mlp_down' is not written");
  fails(MLG_ENSEMBLE, "remembers", "the same member has the same bits");
  fails(MLG_QUANTIZER, "no_scale", "codes and scales are written");
  fails(MLG_OPTIMIZER, "remembers", "scalars() is a function of the step alone");
  fails(MLG_WRAPPER, "remembers", "scalars() is a function of the step alone");
  for (const std::string how : {"negative", "nan", "infinite", "negative_factor"})
    fails(MLG_SCHEDULE, how, "rates and factors are finite and not negative");
}

TEST(PluginCheck, TheHiddenStatesGradientIsComparedToo) {
  const PluginHandle loss = flawed(MLG_LOSS, "hidden_loss");
  EXPECT_TRUE(failures(loss).empty()) << fmt::format("{}", failures(loss));
  const std::vector<std::string> failed = failures(loss, {"gradient_factor=0.8"});
  ASSERT_EQ(failed.size(), 1u) << fmt::format("{}", failed);
  EXPECT_TRUE(failed[0].starts_with("the gradient of the hidden state equals finite differences"))
      << failed[0];
}

TEST(PluginCheck, EveryShippedPluginPasses) {
  PluginHost& host = test_plugin_host();
  int plugins = 0;
  for (const PluginPlace& place : host.search()) {
    for (const std::filesystem::path& file : place.files) {
      const std::string name = plugin_name_of(file);
      // The cuda backend needs a device for its configuration, nccl one at all; they have tests of their own.
      if (name == "cuda" || name == "nccl") continue;
      std::vector<std::string> keys;
      if (name == "sgdr") keys = {"period=20"};
      if (name == "powercool") keys = {"coefficient=1e-4"};
      const auto failed = failures(host.load_file(file), keys);
      EXPECT_TRUE(failed.empty()) << file << fmt::format(": {}", failed);
      ++plugins;
    }
  }
  EXPECT_GE(plugins, 15);
}

// The check run before training refuses what would train on whatever memory holds.
TEST(StartCheck, RefusesALossThatWritesNothing) {
  const PluginHandle plugin = flawed(MLG_LOSS, "flawed_loss");
  const std::unique_ptr<Backend> backend = make_cpu_backend(1);
  backend->add_kernels(*plugin);
  const ModelConfig model = small_model(64, 1);
  EXPECT_NO_THROW(check_loss_at_start(*backend, Loss(plugin, test_plugin_config(plugin)), model, MLG_F32));
  for (const std::string how : {"no_token_loss", "half_gradient"}) {
    const Loss loss(plugin, test_plugin_config(plugin, "how = '" + how + "'"));
    EXPECT_TRUE(refuses([&] { check_loss_at_start(*backend, loss, model, MLG_F32); },
                        ExitCode::bad_configuration, "loss 'flawed_loss'", "is not written"));
  }
}

// Ranks may be threads of one process.
TEST(StartCheck, BackendsOfSeveralThreadsTakeKernelsAtOnce) {
  const PluginHandle plugin = test_plugin_host().load(MLG_OPTIMIZER, "adamw"),
                     cpu = test_plugin_host().load(MLG_BACKEND, "cpu");
  ASSERT_FALSE(plugin->kernels().empty());
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < 4; ++rank)
    ranks.emplace_back([&] {
      for (int i = 0; i < 500; ++i)
        std::make_unique<Backend>(cpu, test_plugin_config(cpu, "threads = 1"))->add_kernels(*plugin);
    });
  ranks.clear();
  EXPECT_EQ(kernel_owner(plugin->kernels().front().name), plugin->description());
}

TEST(StartCheck, AdaptersThatReadNoBlockInputLeaveADefinedGradient) {
  const PluginHandle plugin = flawed(MLG_TTT, "flawed_adapters");
  const std::unique_ptr<Backend> backend = make_cpu_backend(1);
  backend->add_kernels(*plugin);
  const ModelConfig model = small_model(64, 1);
  for (const std::string how : {"bias", "factor"}) {
    EXPECT_NO_THROW(check_adapters_at_start(
        *backend, TttPlugin(plugin, test_plugin_config(plugin, "how = '" + how + "'")), model));
  }
  const TttPlugin unwritten(plugin, test_plugin_config(plugin, "how = 'no_gradient'"));
  EXPECT_THROW(check_adapters_at_start(*backend, unwritten, model), Error);
}

constexpr std::int64_t tokens = 12;

// One micro step of training with a loss of the test's plugins.
class MicroStep {
 public:
  explicit MicroStep(const std::string& keys)
      : model_(small_model(19, 2)), backend_(make_cpu_backend(1)), store_(*backend_) {
    const PluginHandle plugin = test_plugin_host().load(
        MLG_LOSS, "", test_support::built("flawed_plugins") / "mulligan_hidden_loss.so");
    backend_->add_kernels(*plugin);
    loss_ = std::make_unique<Loss>(plugin, test_plugin_config(plugin, keys));
    for (ParameterLayout& layout : parameter_layouts(model_, MLG_F32)) {
      parameters_.push_back({std::move(layout), 0, 1, 1, Communication::replicated});
    }
    Graph graph = build_micro_step(model_, parameters_, *loss_, tokens, LayerOrderKind::plain);
    store_.create_externals(graph);
    program_ = std::make_unique<Program>(*backend_, std::move(graph), "micro step");
    arena_ = std::make_unique<SharedArena>(*backend_);
    arena_->bind({program_.get()}, store_);
    PackedInputWriter inputs(step_tensor::batch, tokens);
    inputs.upload_rope(store_, model_, tokens);
    std::vector<std::int32_t> ids, targets;
    for (std::int32_t t = 0; t < tokens; ++t) {
      ids.push_back((5 * t + 1) % 19);
      targets.push_back((5 * t + 6) % 19);
    }
    inputs.upload(store_, ids, targets, std::vector<std::int32_t>{0, 5, tokens});
    store_.upload(step_tensor::loss_weight, std::vector<float>(tokens, 1.0f / tokens));
    for (const PlannedParameter& parameter : parameters_) {
      if (!store_.contains(master_name(parameter.name()))) continue;
      weights_[parameter.name()] = initial_values(parameter.layout.spec, 3);
      for (float& value : weights_[parameter.name()]) value = 3 * value + 0.05f;  // no part is idle
    }
  }

  // The mean loss, nats, at weights + amount * direction.
  double loss_at(const std::map<std::string, std::vector<float>>& direction, double amount) {
    for (const auto& [name, values] : weights_) {
      std::vector<float> moved = values;
      if (const auto found = direction.find(name); found != direction.end()) {
        for (std::size_t i = 0; i < moved.size(); ++i)
          moved[i] += static_cast<float>(amount * static_cast<double>(found->second[i]));
      }
      store_.upload(master_name(name), moved);
      store_.zero(gradient_name(name));
    }
    store_.zero(step_tensor::loss_sum);
    program_->run();
    return store_.download_as<double>(step_tensor::loss_sum)[0] / tokens;
  }

  std::map<std::string, std::vector<float>> gradients() {
    loss_at({}, 0);
    std::map<std::string, std::vector<float>> all;
    for (const auto& [name, values] : weights_) all[name] = store_.download_as<float>(gradient_name(name));
    return all;
  }

  // How far the gradient of the parameter is from the slope along it, relative to it; absent where differences are noise.
  std::optional<double> error_of(const std::string& name) {
    const std::vector<float> gradient = gradients().at(name);
    double square = 0;
    for (const float value : gradient) square += static_cast<double>(value) * static_cast<double>(value);
    if (square < 1e-3) return {};
    const double amount = 1e-2 / std::sqrt(square);
    const std::map<std::string, std::vector<float>> along{{name, gradient}};
    const double near = loss_at(along, amount) - loss_at(along, -amount);
    const double far = loss_at(along, 2 * amount) - loss_at(along, -2 * amount);
    return std::abs((8 * near - far) / (12 * amount) / square - 1);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [name, values] : weights_) names.push_back(name);
    return names;
  }

 private:
  ModelConfig model_;
  std::unique_ptr<Backend> backend_;
  TensorStore store_;
  std::unique_ptr<Loss> loss_;
  std::vector<PlannedParameter> parameters_;
  std::unique_ptr<Program> program_;
  std::unique_ptr<SharedArena> arena_;
  std::map<std::string, std::vector<float>> weights_;
};

TEST(HiddenLoss, EveryParametersGradientIsThatOfTheWholeLoss) {
  MicroStep step("weight = 200");
  int compared = 0;
  for (const std::string& name : step.names()) {
    const std::optional<double> error = step.error_of(name);
    if (!error) continue;
    EXPECT_LT(*error, 0.03) << name;
    ++compared;
  }
  EXPECT_GE(compared, 5);
}

TEST(HiddenLoss, ThePenaltyIsInTheLossAndAWrongGradientOfItShows) {
  EXPECT_GT(MicroStep("weight = 200\ngradient_factor = 0.5").error_of("qo_bank").value(), 0.1);
  EXPECT_GT(MicroStep("weight = 200").loss_at({}, 0), MicroStep("weight = 0").loss_at({}, 0) + 0.01);
}

}  // namespace
}  // namespace mulligan::plugin_check_test
