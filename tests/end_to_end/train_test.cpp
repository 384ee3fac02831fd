// Whole training runs: they learn, repeat bit for bit, and do not depend on what must not matter.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "framework/core/safetensors.h"
#include "framework/model/initialise.h"
#include "tests/end_to_end/tiny_run.h"
#include "tests/support/plugins.h"
#include "tests/support/sentence.h"

namespace mulligan::end_to_end::train_test {
namespace {

using Json = nlohmann::json;

const double uniform_loss = std::log(static_cast<double>(tiny_vocabulary));

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

// The records of one event in metrics.jsonl.
std::vector<Json> events(const RunResult& result, const std::string& name) {
  return events_of(result.directory, name);
}

std::string refusal(const std::vector<std::string>& overrides, ExitCode code) {
  return refusal_of(code, [&] { tiny().train(overrides); });
}

TEST(Train, StartsAtTheUniformLossAndLearns) {
  const RunResult result = tiny().train({"train.steps=150", "schedule.plugin=warmdown"});
  EXPECT_NEAR(result.initial_loss_nats, uniform_loss, 0.05);
  EXPECT_LT(result.final_loss_nats, 0.5 * uniform_loss);
  ASSERT_TRUE(result.validation);
  const EvalResult& score = *result.validation;
  EXPECT_LT(score.val_loss_nats, 0.5 * uniform_loss);
  EXPECT_GT(score.bytes, score.tokens);
  EXPECT_NEAR(score.val_bpb, score.loss_sum_nats / std::log(2.0) / static_cast<double>(score.bytes), 1e-12);
  EXPECT_EQ(result.steps, 150);
  EXPECT_EQ(result.step_loss_nats.size(), 150u);
  EXPECT_EQ(result.tokens, 150 * 256);
}

TEST(Train, BothLossPluginsGiveTheSameLosses) {
  const RunResult fused = tiny().train({"loss.plugin=softcap_ce"});
  const RunResult plain = tiny().train({"loss.plugin=cross_entropy"});
  EXPECT_LE(largest_difference(fused.step_loss_nats, plain.step_loss_nats), 1e-4);
  const RunResult uncapped = tiny().train({"loss.plugin=softcap_ce", "model.softcap=0.0"});
  const RunResult plain_uncapped = tiny().train({"loss.plugin=cross_entropy", "model.softcap=0.0"});
  EXPECT_LE(largest_difference(uncapped.step_loss_nats, plain_uncapped.step_loss_nats), 1e-4);
}

TEST(Train, ClipOrderDoesNotMatterToOneRank) {
  const Overrides common = {"train.micro_batches=2", "train.clip_norm=0.2"};
  EXPECT_EQ(tiny().train(with(common, {"train.clip_order=before_reduction"})).step_loss_nats,
            tiny().train(with(common, {"train.clip_order=after_reduction"})).step_loss_nats);
}

// The clip is recorded before it acts, for every optimiser's parameters and for all of them together.
TEST(Train, GradientNormsOfTheGroupsMakeUpTheWhole) {
  const RunResult result = tiny().train({"train.steps=4", "train.log_every=1", "train.clip_norm=0.01"});
  const std::vector<Json> steps = events(result, "step");
  ASSERT_EQ(steps.size(), 4u);
  for (const Json& step : steps) {
    const double matrices = step.at("gradient_norm_of").at("matrices");
    const double rest = step.at("gradient_norm_of").at("rest");
    const double whole = step.at("gradient_norm");
    EXPECT_GT(matrices, 0.01);
    EXPECT_GT(rest, 0.01);
    EXPECT_NEAR(std::hypot(matrices, rest), whole, 1e-6 * whole);
    EXPECT_GT(step.at("slowest_step_seconds"), 0);
    EXPECT_NEAR(step.at("tokens_per_second").get<double>() * step.at("step_seconds").get<double>(), 256,
                1e-6);
  }
}

TEST(Train, MetricsTellTheMemoryPlan) {
  const std::vector<Json> memory = events(tiny().train({"train.steps=1", "ema.decay=0.9"}), "memory");
  ASSERT_EQ(memory.size(), 1u);
  const Json& tensors = memory[0].at("tensors_bytes");
  for (const char* what : {"master weights", "gradients", "optimiser state", "averaged weights"}) {
    EXPECT_GT(tensors.at(what), 0) << what;
  }
  EXPECT_EQ(tensors.at("gradients"), tensors.at("averaged weights"));  // both f32, one for every parameter
  std::int64_t largest = 0;
  for (const auto& [program, bytes] : memory[0].at("programs_bytes").items()) {
    largest = std::max(largest, bytes.get<std::int64_t>());
  }
  EXPECT_GE(memory[0].at("arena_bytes"), largest);
}

TEST(Train, WarmUpLeavesTheRunAsItWouldBeWithout) {
  const Overrides common = {"ema.decay=0.8", "train.micro_batches=2"},
                  warm = with(common, {"train.warmup.steps=3"});
  const RunResult without = tiny().train(common), warmed = tiny().train(warm);
  EXPECT_EQ(without.step_loss_nats, warmed.step_loss_nats);
  EXPECT_EQ(without.validation->loss_sum_nats, warmed.validation->loss_sum_nats);
  const RunResult with_momentum = tiny().train(with(warm, {"train.warmup.keep_muon_momentum=true"}));
  EXPECT_EQ(without.step_loss_nats[0], with_momentum.step_loss_nats[0]);  // the weights are restored
  EXPECT_NE(without.step_loss_nats, with_momentum.step_loss_nats);
}

// e <- d e + (1 - d) p after each step, from the initial weights.
TEST(Train, AveragedWeightsFollowTheFormula) {
  const double decay = 0.7;
  const std::string always_looped = "model.loop.start_fraction=0.0";
  const std::string name = "mlp_up_bank";
  const LoadedConfig loaded = tiny().config({});
  std::vector<double> average;
  for (const ParameterSpec& spec : model_parameters(loaded.config.model)) {
    if (spec.name != name) continue;
    for (const float value : initial_values(spec, static_cast<std::uint64_t>(loaded.config.run.seed))) {
      average.push_back(static_cast<double>(value));
    }
  }
  for (int steps = 1; steps <= 3; ++steps) {
    const RunResult result = tiny().train({"train.steps=" + std::to_string(steps), always_looped});
    const std::vector<float> weights = weights_of(result, name);
    ASSERT_EQ(weights.size(), average.size());
    for (std::size_t i = 0; i < weights.size(); ++i) {
      average[i] = decay * average[i] + (1 - decay) * static_cast<double>(weights[i]);
    }
  }
  const RunResult averaged = tiny().train({"train.steps=3", "ema.decay=0.7", always_looped});
  const std::vector<float> theirs = weights_of(averaged, name);
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(theirs[i]), average[i], 1e-6) << i;
  }
}

TEST(Train, SavedWeightsScoreAsTheRunDid) {
  for (const char* compute :
       {"train.compute_dtype=fp32", "train.compute_dtype=bf16", "train.layercast=bf16"}) {
    const std::vector<std::string> overrides = {"ema.decay=0.8", compute};
    const RunResult result = tiny().train(overrides);
    LoadedConfig loaded = tiny().config(overrides);
    const EvalResult again =
        evaluate_weights(loaded, test_plugin_host(), result.directory / "weights.safetensors", {nullptr});
    EXPECT_EQ(again.loss_sum_nats, result.validation->loss_sum_nats) << compute;
    EXPECT_EQ(again.bytes, result.validation->bytes);
  }
}

TEST(Train, Bf16ComputeAndBf16MastersStayCloseToFp32) {
  const RunResult fp32 = tiny().train({"train.steps=15"});
  const RunResult bf16 = tiny().train({"train.steps=15", "train.compute_dtype=bf16"});
  EXPECT_LE(largest_difference(fp32.step_loss_nats, bf16.step_loss_nats), 0.08);
  EXPECT_NE(fp32.step_loss_nats, bf16.step_loss_nats);
  const RunResult masters = tiny().train({"train.steps=15", "parameters.1.master_dtype=bf16"});
  EXPECT_LE(largest_difference(fp32.step_loss_nats, masters.step_loss_nats), 0.08);
  EXPECT_NE(fp32.step_loss_nats, masters.step_loss_nats);
}

TEST(Train, WarmRestartsOfTheScheduleAreLogged) {
  const RunResult result =
      tiny().train({"train.steps=10", "train.log_every=1", "optimizer.rest.schedule.plugin=sgdr",
                    "optimizer.rest.schedule.period=4.0", "optimizer.rest.schedule.by=step"});
  const auto restarts = events(result, "restart");
  ASSERT_EQ(restarts.size(), 2u);
  EXPECT_EQ(restarts[0].at("optimizer"), "rest");
  EXPECT_EQ(restarts[0].at("step"), 4);
  EXPECT_EQ(restarts[1].at("step"), 8);
  EXPECT_EQ(restarts[1].at("cycle"), 2);
  // The other group keeps the run's own schedule.
  for (const Json& step : events(result, "step")) EXPECT_EQ(step.at("lr").at("matrices"), 0.02);
}

TEST(Train, MetricsGiveWindowsAndTheirMeans) {
  const RunResult result = tiny().train({"train.steps=12", "train.log_every=5", "train.validate_every=6"});
  const auto steps = events(result, "step");
  ASSERT_EQ(steps.size(), 4u);  // 1, 5, 10, and the end
  const std::vector<std::pair<int, int>> windows = {{0, 1}, {1, 5}, {5, 10}, {10, 12}};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto [first, last] = windows[i];
    EXPECT_EQ(steps[i].at("window"), Json({first, last}));
    EXPECT_EQ(steps[i].at("step"), last);
    EXPECT_EQ(steps[i].at("tokens"), last * 256);
    double sum = 0;
    for (int step = first; step < last; ++step) sum += result.step_loss_nats[static_cast<std::size_t>(step)];
    EXPECT_NEAR(steps[i].at("window_loss_nats").get<double>(), sum / (last - first), 1e-12);
    EXPECT_EQ(steps[i].at("loss_nats").get<double>(),
              result.step_loss_nats[static_cast<std::size_t>(last - 1)]);
    EXPECT_GT(steps[i].at("gradient_norm").get<double>(), 0.0);
  }
  const auto validations = events(result, "validation");
  ASSERT_EQ(validations.size(), 3u);  // 6, 12, and the end
  EXPECT_EQ(validations[0].at("step"), 6);
  EXPECT_EQ(validations[2].at("val_bpb").get<double>(), result.validation->val_bpb);
}

TEST(Train, ValidationDoesNotChangeTheRun) {
  EXPECT_EQ(tiny().train({"train.validate_every=2", "ema.decay=0.9"}).step_loss_nats,
            tiny().train({"ema.decay=0.9"}).step_loss_nats);
}

TEST(Train, TheRunDirectoryHoldsConfigurationLogMetricsWeightsAndResult) {
  const RunResult result = tiny().train({"ema.decay=0.9"});
  const Json json = result_of(result.directory);
  EXPECT_EQ(json.at("steps"), 10);
  EXPECT_EQ(json.at("tokens"), 2560);
  EXPECT_EQ(json.at("parameters"), result.parameters);
  EXPECT_EQ(json.at("val_bpb").get<double>(), result.validation->val_bpb);
  EXPECT_EQ(json.at("val_tokens"), result.validation->tokens);
  EXPECT_EQ(json.at("val_bytes"), result.validation->bytes);
  EXPECT_EQ(json.at("weights"), "averaged");
  EXPECT_EQ(json.at("config_sha256").get<std::string>().size(), 64u);
  EXPECT_GT(json.at("peak_memory_bytes").get<std::int64_t>(), 0);
  EXPECT_FALSE(json.at("commit").get<std::string>().empty());
  for (const char* phase : {"setup", "compile", "train", "evaluate"}) {
    EXPECT_GE(json.at("seconds").at(phase).get<double>(), 0.0) << phase;
  }
  std::vector<std::string> names;
  for (const Json& plugin : json.at("plugins")) {
    names.push_back(plugin.at("name"));
    EXPECT_EQ(plugin.at("sha256").get<std::string>().size(), 64u);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"cpu", "softcap_ce", "constant", "muon", "adamw"}));
  EXPECT_FALSE(lines_of(result.directory / "log.txt").empty());
  // The resolved configuration is a configuration, of the same run.
  const LoadedConfig again = load_run_config((result.directory / "config.toml").string());
  EXPECT_EQ(again.config.train.steps, 10);
  EXPECT_EQ(again.config.ema.decay, 0.9);
}

TEST(Train, WhatCannotBeHonouredIsRefused) {
  EXPECT_TRUE(contains(refusal({"backend.plugin=null"}, ExitCode::bad_configuration), "null"));
  EXPECT_TRUE(contains(
      refusal({"run.determinism=world", "train.compute_dtype=bf16"}, ExitCode::bad_configuration), "world"));
  EXPECT_TRUE(contains(refusal({"data.train=/nowhere/*.bin"}, ExitCode::bad_data), "/nowhere"));
  EXPECT_TRUE(contains(refusal({"ledger.rules=strict", "ledger.train_seconds=1e-9"}, ExitCode::run_failed),
                       "ledger"));
}

TEST(Train, SlidingEvaluationScoresTheSameTokensWithMoreContext) {
  const RunResult rows = tiny().train({"train.steps=60"});
  const RunResult sliding = tiny().train({"train.steps=60", "eval.mode=sliding", "eval.stride=16"});
  EXPECT_EQ(rows.validation->tokens, sliding.validation->tokens);
  EXPECT_EQ(rows.validation->bytes, sliding.validation->bytes);
  EXPECT_NE(rows.validation->loss_sum_nats, sliding.validation->loss_sum_nats);
  EXPECT_NEAR(rows.validation->val_loss_nats, sliding.validation->val_loss_nats, 0.3);
}

}  // namespace
}  // namespace mulligan::end_to_end::train_test
