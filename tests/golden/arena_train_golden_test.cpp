// Whole runs of the arena's scripts (fixture folder arena-optim, train.*): data, model, optimisers, schedules, what is
// done around the updates, the tail average and the score together.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "framework/data/prefetcher.h"
#include "framework/eval/evaluate.h"
#include "framework/ranks/host_group.h"
#include "framework/run/weights.h"
#include "framework/step/step_graphs.h"
#include "framework/step/training_programs.h"
#include "tests/golden/arena_train_config.h"
#include "tests/golden/differences.h"
#include "tests/support/long_tests.h"
#include "tests/support/plugins.h"
#include "tests/support/scratch_folder.h"

namespace mulligan::arena_train_golden_test {
namespace {

// One script's run on one backend.
class ScriptRun {
 public:
  ScriptRun(const GoldenFixture& fixture, const std::string& script, const ScriptOptions& options)
      : fixture_(fixture),
        script_(script),
        loaded_(parse_run_config(config_of_script(fixture, script, options), script + ".toml",
                                 std::vector<std::string>{"init.from=" + initial_weights()})),
        plugins_((resolve_run_plugins(loaded_, test_plugin_host()),
                  make_run_plugins(loaded_, test_plugin_host()))),
        parameters_(plan_parameters(loaded_.config)),
        groups_(loaded_.config, plugins_, parameters_),
        communicator_(make_self_communicator()),
        validation_(load_validation(loaded_.config.data, loaded_.config.model.vocabulary,
                                    loaded_.config.eval.tokens)),
        programs_(loaded_.config, "backend", plugins_, parameters_, groups_, *communicator_,
                  validation_.segment_start()) {
    programs_.bind();
    engine().initialise(1);
    LoaderOptions how;
    how.shards = find_shards({loaded_.config.data.train}, DataSplit::train);
    how.row_tokens = tokens_per_micro_batch(loaded_.config.train);
    how.max_segment_tokens = loaded_.config.train.sequence_length;
    how.bos_id = kNoDocuments;
    how.order = DataOrder::stream;
    how.group_spans = loaded_.config.train.micro_batches;
    rows_ = std::make_unique<Prefetcher>(std::make_unique<Loader>(how), 2);
  }

  void step() {
    const std::int64_t total = loaded_.config.train.steps;
    groups_.set_rates({done_, total, static_cast<double>(done_) / static_cast<double>(total), 0});
    engine().step(++done_, *rows_);
  }
  std::int64_t done() const { return done_; }
  double validation_loss() {
    programs_.refresh_scored_weights();
    return evaluate(*programs_.evaluator(), validation_, *make_single_group()).val_loss_nats;
  }
  std::vector<float> at_rest(const std::string& name) {
    return floats(groups_.wrapped() ? rest_name(name) : master_name(name));
  }
  std::vector<float> average(const std::string& name) { return floats(average_name(name)); }
  const std::vector<PlannedParameter>& parameters() const { return parameters_; }
  std::vector<double> initial(const std::string& parameter) const {
    return fixture_.doubles(fmt::format("train.{}.init.{}", initial_script(), parameter));
  }

 private:
  std::string initial_script() const {
    const nlohmann::json& same = fixture_.manifest().at("info").at("train.init_same_as");
    return same.contains(script_) ? same.at(script_).get<std::string>() : script_;
  }
  std::string initial_weights() const {
    const std::filesystem::path file = folder_ / "initial.safetensors";
    const std::string prefix = fmt::format("train.{}.init.", initial_script());
    std::vector<StoredTensor> tensors;
    for (const std::string& name : fixture_.names()) {
      if (!name.starts_with(prefix)) continue;
      tensors.push_back(fixture_.file().at(name));
      tensors.back().name = name.substr(prefix.size());
    }
    write_safetensors(file, tensors, {});
    return file.string();
  }
  TrainingEngine& engine() { return programs_.engine(); }
  std::vector<float> floats(const std::string& tensor) {
    plugins_.backend->synchronize();
    return download_values(engine().store(), tensor);
  }

  const GoldenFixture& fixture_;
  std::string script_;
  test_support::ScratchFolder folder_;
  LoadedConfig loaded_;
  RunPlugins plugins_;
  std::vector<PlannedParameter> parameters_;
  OptimizerGroups groups_;
  std::unique_ptr<Communicator> communicator_;
  ValidationSet validation_;
  TrainingPrograms programs_;
  std::unique_ptr<Prefetcher> rows_;
  std::int64_t done_ = 0;
};

// Of the manifest, f32.
constexpr double close = 3e-4, stray = 1e-2, share_of_strays = 1e-3, loss_tolerance = 1e-5;

class ArenaTrain : public testing::TestWithParam<std::string> {
 protected:
  const GoldenFixture fixture{"arena-optim"};
  std::vector<std::string> scripts() const {
    std::vector<std::string> names;
    for (const std::string& name : parts_after(fixture, "train.")) {
      if (fixture.has("train." + name + ".digest") && runs(name)) names.push_back(name);
    }
    return names;
  }
  // On the emulated device the short form runs the script that has most parts, and each part of the others is
  // compared by itself (arena_optim_golden_test.cpp).
  bool runs(const std::string& script) const {
    return GetParam() == "cpu" || script == "sota_nosoap" || long_tests();
  }
  std::int64_t steps(const std::string& script) const {
    return static_cast<std::int64_t>(fixture.element_count("train." + script + ".val_loss")) - 1;
  }
  ScriptOptions plain() const { return {.backend = GetParam()}; }
  std::string name(const std::string& script, const std::string& what) const {
    return "train." + script + "." + what;
  }

  // The scores before each update and after the last.
  void expect_losses(const std::string& script, const std::string& stored, const ScriptOptions& options,
                     double tolerance, const std::function<void(ScriptRun&)>& behind_each = {}) {
    ScriptRun run(fixture, script, options);
    const std::vector<double> expected = fixture.doubles(name(script, stored));
    for (std::int64_t step = 0; step <= steps(script); ++step) {
      if (step > 0) {
        run.step();
        if (behind_each) behind_each(run);
      }
      EXPECT_NEAR(run.validation_loss(), expected[static_cast<std::size_t>(step)], tolerance)
          << script << "." << stored << " after " << step << " updates";
    }
  }
  // Of all elements of the weights after so many updates.
  void expect_weights(const std::string& script, ScriptRun& run) {
    const std::string prefix = name(script, fmt::format("step{}.", run.done()));
    if (!fixture.has(prefix + "embed.weight")) return;
    std::size_t count = 0, strays = 0;
    for (const PlannedParameter& parameter : run.parameters()) {
      const std::vector<double> expected = fixture.doubles(prefix + parameter.name());
      const std::vector<float> weights = run.at_rest(parameter.name());
      ASSERT_EQ(weights.size(), expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const double apart = std::abs(static_cast<double>(weights[i]) - expected[i]);
        ASSERT_LE(apart, stray) << prefix << parameter.name() << " " << i;
        strays += apart > close;
      }
      count += expected.size();
    }
    ++compared_;
    EXPECT_LE(static_cast<double>(strays), share_of_strays * static_cast<double>(count)) << prefix;
  }
  // Sums and norms after each update: further apart than these bounds they are of other weights.
  void expect_digests(const std::string& script, ScriptRun& run) {
    const std::vector<double> digests =
        row(fixture.doubles(name(script, "digest")), run.done() - 1, steps(script));
    const nlohmann::json& names = fixture.manifest().at("info").at("train").at("parameters");
    for (std::size_t p = 0; p < names.size(); ++p) {
      const std::vector<float> weights = run.at_rest(names[p]);
      double sum = 0, squares = 0;
      for (const auto weight : std::vector<double>(weights.begin(), weights.end()))
        sum += weight, squares += weight * weight;
      const auto count = static_cast<double>(weights.size());
      const double strays = std::ceil(share_of_strays * count) * stray;
      EXPECT_NEAR(sum, digests[2 * p], count * close + strays) << names[p] << " after " << run.done();
      EXPECT_NEAR(std::sqrt(squares), digests[2 * p + 1], std::sqrt(count) * close + strays)
          << names[p] << " after " << run.done();
    }
  }
  int compared_ = 0;
};

TEST_P(ArenaTrain, WeightsAndLossesOfEveryStep) {
  ASSERT_GE(scripts().size(), runs("baseline") ? 4u : 1u);
  for (const std::string& script : scripts()) {
    SCOPED_TRACE(script);
    ScriptOptions raw = plain();
    raw.average = false;
    expect_losses(script, "val_loss", raw, loss_tolerance, [&](ScriptRun& run) {
      expect_digests(script, run);
      expect_weights(script, run);
    });
  }
  EXPECT_GE(compared_, static_cast<int>(scripts().size()));
}

TEST_P(ArenaTrain, LossesOfTheTailAverage) {
  int averaged = 0;
  for (const std::string& script : scripts()) {
    if (!fixture.has(name(script, "val_ema_loss"))) continue;
    SCOPED_TRACE(script);
    expect_losses(script, "val_ema_loss", plain(), loss_tolerance, [&](ScriptRun& run) {
      if (run.done() < steps(script)) return;
      for (const PlannedParameter& parameter : run.parameters()) {
        const std::string stored = name(script, "tail." + parameter.name());
        if (!fixture.has(stored)) continue;
        expect_near(run.average(parameter.name()), fixture.doubles(stored), close);
        ++averaged;
      }
    });
  }
  EXPECT_GT(averaged, 0);
}

// The script whose bases are arbitrary after some steps: weights before, losses all along.
TEST_P(ArenaTrain, WhatIsDeterminedOfThePreconditioner) {
  const std::string script = "sota";
  const std::int64_t determined = fixture.manifest().at("info").at("train.sota.determined").at("steps");
  ScriptOptions raw = plain();
  raw.average = false;
  expect_losses(script, "val_loss", raw, 1e-3, [&](ScriptRun& run) {
    if (run.done() != determined) return;
    for (const PlannedParameter& parameter : run.parameters()) {
      const std::vector<double> expected = fixture.doubles(
                                    name(script, fmt::format("step{}.{}", determined, parameter.name()))),
                                initial = run.initial(parameter.name());
      const std::vector<float> weights = run.at_rest(parameter.name());
      double error = 0, change = 0;
      for (std::size_t i = 0; i < expected.size(); ++i) {
        error += std::pow(static_cast<double>(weights[i]) - expected[i], 2);
        change += std::pow(expected[i] - initial[i], 2);
      }
      EXPECT_LE(std::sqrt(error), 1e-3 * std::sqrt(change)) << parameter.name();
    }
  });
  if (runs(script)) expect_losses(script, "val_ema_loss", plain(), 1e-3);
}

TEST_P(ArenaTrain, LossesAsPublishedInBf16) {
  int compared = 0;
  for (const std::string& script : parts_after(fixture, "train.")) {
    if (!fixture.has(name(script, "bf16.val_loss")) || !runs(script)) continue;
    ScriptOptions bf16 = plain();
    bf16.bf16 = true;
    bf16.average = false;
    expect_losses(script, "bf16.val_loss", bf16, 0.02);
    ++compared;
    bf16.average = true;
    if (fixture.has(name(script, "bf16.val_ema_loss")))
      expect_losses(script, "bf16.val_ema_loss", bf16, 0.02);
  }
  EXPECT_GE(compared, runs("baseline") ? 5 : 1);
}

INSTANTIATE_TEST_SUITE_P(Backends, ArenaTrain, testing::Values("cpu", "cuda"),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace mulligan::arena_train_golden_test
