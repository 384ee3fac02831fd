// What the optimiser plugins promise beyond their formulas.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/support/plugin_runner.h"
#include "tests/support/sentence.h"

namespace mulligan::optimizer_plugins_test {
namespace {

using plugin_test::OptimizerRunner;

std::vector<float> random_values(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

TEST(AdamwPlugin, StateFollowsTheMasterOnlyWhenAsked) {
  const TensorType bf16(MLG_BF16, {3, 4});
  OptimizerRunner wide("adamw", "", {{"w", bf16}}), narrow("adamw", "state_dtype = 'master'", {{"w", bf16}});
  EXPECT_EQ(wide.state_dtype("w.exp_avg"), MLG_F32);
  EXPECT_EQ(narrow.state_dtype("w.exp_avg"), MLG_BF16);
  EXPECT_EQ(narrow.state_dtype("w.exp_avg_sq"), MLG_BF16);
}

TEST(AdamwPlugin, WithoutMomentumThereIsNoFirstMoment) {
  OptimizerRunner runner("adamw", "beta1 = 0.0", {{"w", TensorType(MLG_F32, {3, 4})}});
  EXPECT_EQ(runner.state_dtype("w.exp_avg_sq"), MLG_F32);
  EXPECT_THROW(runner.state_dtype("w.exp_avg"), std::logic_error);
}

// Moments in bf16 are rounded stochastically, or refused with the reason.
TEST(AdamwPlugin, Bf16MomentsNeedStochasticRounding) {
  const TensorType f32(MLG_F32, {3, 4}), bf16(MLG_BF16, {3, 4});
  EXPECT_TRUE(contains(sentence_of([&] {
                         OptimizerRunner("adamw", "state_dtype = 'bf16'", {{"w", f32}});
                       }),
                       "stochastic_rounding = true"));
  EXPECT_TRUE(contains(sentence_of([&] {
                         OptimizerRunner("adamw", "state_dtype = 'master'\nbeta2 = 0.99", {{"w", bf16}});
                       }),
                       "stand still"));
  OptimizerRunner runner("adamw", "state_dtype = 'bf16'\nstochastic_rounding = true\nbeta2 = 0.999",
                         {{"w", f32}});
  EXPECT_EQ(runner.state_dtype("w.exp_avg"), MLG_BF16);
  EXPECT_EQ(runner.state_dtype("w.exp_avg_sq"), MLG_BF16);
}

TEST(AdamwPlugin, StochasticMomentsStayNearF32AndFollowTheirSeed) {
  const std::vector<float> initial = random_values(1000, 1);
  const TensorType type(MLG_F32, {1000});
  const std::string stochastic = "state_dtype = 'bf16'\nstochastic_rounding = true\n";
  OptimizerRunner exact("adamw", "", {{"w", type, initial}}),
      rounded("adamw", stochastic, {{"w", type, initial}}), same("adamw", stochastic, {{"w", type, initial}}),
      other("adamw", stochastic + "rounding_seed = 1", {{"w", type, initial}});
  for (unsigned step = 0; step < 5; ++step) {
    const std::vector<float> gradient = random_values(1000, 10 + step);
    for (OptimizerRunner* runner : {&exact, &rounded, &same, &other}) runner->step({{"w", gradient}}, 0.02);
  }
  const std::vector<float> a = exact.master("w"), b = rounded.master("w");
  EXPECT_NE(a, b);
  EXPECT_EQ(same.master("w"), b);
  EXPECT_NE(other.master("w"), b);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 0.004) << i;
}

// With zero gradients from the start p (1 - lr * lr_multiplier * weight_decay * wd_multiplier) is left.
TEST(OptimizerPlugins, MultipliersScaleRateAndDecay) {
  const TensorType type(MLG_F32, {2, 2});
  const std::vector<float> ones(4, 1.0f);
  for (const std::string plugin : {"adamw", "muon", "sgd"}) {
    OptimizerRunner runner(
        plugin, "weight_decay = 0.5",
        {{"plain", type, ones}, {"fast", type, ones, 3.0, 1.0}, {"free", type, ones, 1.0, 0.0}});
    const std::vector<float> zeros(4, 0.0f);
    runner.step({{"plain", zeros}, {"fast", zeros}, {"free", zeros}}, 0.1);
    EXPECT_FLOAT_EQ(runner.master("plain")[3], 0.95f) << plugin;
    EXPECT_FLOAT_EQ(runner.master("fast")[3], 0.85f) << plugin;
    EXPECT_FLOAT_EQ(runner.master("free")[3], 1.0f) << plugin;
  }
}

// Rows (or columns, if those are fewer) have length near sqrt(max(1, r/c)).
TEST(MuonPlugin, UpdateIsNearlyOrthogonal) {
  for (const auto& [rows, columns] : {std::pair{16, 64}, std::pair{64, 16}}) {
    for (const int iterations : {5, 8}) {  // beyond five, the last polynomial repeats
      OptimizerRunner runner("muon", fmt::format("iterations = {}", iterations),
                             {{"w", TensorType(MLG_F32, {rows, columns})}});
      runner.step({{"w", random_values(rows * columns, 9)}}, 1.0);
      const std::vector<float> w = runner.master("w");
      const double scale = std::max(1.0, static_cast<double>(rows) / columns);
      const int count = std::min(rows, columns), length = std::max(rows, columns);
      for (int k = 0; k < count; ++k) {
        double square = 0.0;
        for (int i = 0; i < length; ++i) {
          square += std::pow(rows < columns ? w[k * columns + i] : w[i * columns + k], 2);
        }
        EXPECT_NEAR(std::sqrt(square / scale), 1.0, 0.16) << rows << " x " << columns << ", vector " << k;
      }
    }
  }
}

TEST(MuonPlugin, RefusesVectorsInOneSentence) {
  const std::string sentence = sentence_of([] {
    OptimizerRunner("muon", "", {{"blocks.0.gain", TensorType(MLG_F32, {8})}});
  });
  EXPECT_TRUE(contains(sentence, "parameter blocks.0.gain has rank 1", "adamw or sgd"));
}

TEST(SgdPlugin, NesterovNeedsMomentum) {
  const std::string sentence = sentence_of([] {
    OptimizerRunner("sgd", "momentum = 0\nnesterov = true", {{"w", TensorType(MLG_F32, {8})}});
  });
  EXPECT_TRUE(contains(sentence, "nesterov = true needs momentum > 0"));
}

TEST(SgdPlugin, WithoutMomentumThereIsNoState) {
  OptimizerRunner runner("sgd", "momentum = 0", {{"w", TensorType(MLG_F32, {2}), {1.0f, 2.0f}}});
  runner.step({{"w", {0.5f, -1.0f}}}, 0.5);
  EXPECT_EQ(runner.master("w"), (std::vector<float>{0.75f, 2.5f}));
  EXPECT_THROW(runner.state("w.momentum_buffer"), std::logic_error);
}

// Schedule-free AdamW against the paper's three sequences y, z, x, written naively in double.
TEST(ScheduleFreePlugin, FollowsThePapersSequences) {
  constexpr std::size_t count = 37;
  constexpr double beta1 = 0.85, beta2 = 0.97, eps = 1e-6, decay = 0.1, multiplier = 1.5;
  const std::vector<float> initial = random_values(count, 1);
  OptimizerRunner runner(
      "schedule_free_adamw",
      fmt::format("beta1 = {}\nbeta2 = {}\neps = {}\nweight_decay = {}", beta1, beta2, eps, decay),
      {{"w", TensorType(MLG_F32, {count}), initial, multiplier, 0.5}});
  std::vector<double> y(initial.begin(), initial.end()), z = y, x = y, v(count, 0.0);
  double sum = 0;
  for (int t = 1; t <= 60; ++t) {
    const double lr = t <= 10 ? 0.03 * t / 10 : 0.03;  // a warm-up
    const std::vector<float> gradient = random_values(count, 100 + static_cast<unsigned>(t));
    runner.step({{"w", gradient}}, lr);
    const double bias = std::sqrt(1 - std::pow(beta2, t)), gamma = lr * multiplier * bias;
    sum += gamma * gamma;
    const double c = gamma * gamma / sum;
    for (std::size_t i = 0; i < count; ++i) {
      const double g = static_cast<double>(gradient[i]);
      v[i] = beta2 * v[i] + (1 - beta2) * g * g;
      z[i] -= gamma * (g / (std::sqrt(v[i]) + eps) + decay * 0.5 * y[i]);
      x[i] = (1 - c) * x[i] + c * z[i];
      y[i] = (1 - beta1) * z[i] + beta1 * x[i];
    }
    const std::vector<float> master = runner.master("w"), evaluation = runner.evaluation("w");
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_NEAR(static_cast<double>(master[i]), y[i], 2e-5) << "y, step " << t;
      EXPECT_NEAR(static_cast<double>(evaluation[i]), x[i], 2e-5) << "x, step " << t;
    }
  }
}

TEST(ScheduleFreePlugin, AFirstRateOfZeroHarmsNothing) {
  OptimizerRunner runner("schedule_free_adamw", "", {{"w", TensorType(MLG_F32, {2}), {1.0f, -2.0f}}});
  runner.step({{"w", {0.5f, 0.5f}}}, 0.0);
  EXPECT_EQ(runner.master("w"), (std::vector<float>{1.0f, -2.0f}));
  runner.step({{"w", {0.5f, 0.5f}}}, 0.1);
  EXPECT_LT(runner.master("w")[0], 1.0f);
  EXPECT_EQ(runner.evaluation("w"), runner.master("w"))
      << "after the first real step there is nothing to average";
}

// A schedule's factor times the key is the key of another instance.
TEST(OptimizerPlugins, AFactorActsAsAnotherKeyWould) {
  struct Case {
    const char *plugin, *plain, *scaled;
    mlg_step factors;
  };
  for (const Case& c :
       {Case{"adamw",
             "beta1 = 0.8\nweight_decay = 0.2",
             "beta1 = 0.4\nweight_decay = 0.2",
             {0, 0, 0, 0, 0.5, 1}},
        Case{"adamw", "weight_decay = 0.2", "weight_decay = 0.1", {0, 0, 0, 0, 1, 0.5}},
        Case{"muon",
             "momentum = 0.8\nweight_decay = 0.2",
             "momentum = 0.4\nweight_decay = 0.1",
             {0, 0, 0, 0, 0.5, 0.5}},
        Case{"sgd",
             "momentum = 0.8\nweight_decay = 0.2",
             "momentum = 0.4\nweight_decay = 0.1",
             {0, 0, 0, 0, 0.5, 0.5}},
        Case{"sgd",
             "weight_decay = 0.2\nweight_decay_mode = 'coupled'",
             "weight_decay = 0.1\nweight_decay_mode = 'coupled'",
             {0, 0, 0, 0, 1, 0.5}},
        Case{"schedule_free_adamw", "weight_decay = 0.2", "weight_decay = 0.1", {0, 0, 0, 0, 1, 0.5}}}) {
    const OptimizerRunner::Parameter parameter{"w", TensorType(MLG_F32, {4, 6}), random_values(24, 3)};
    OptimizerRunner scheduled(c.plugin, c.plain, {parameter}), configured(c.plugin, c.scaled, {parameter}),
        untouched(c.plugin, c.plain, {parameter});
    for (unsigned step = 0; step < 4; ++step) {
      const std::vector<float> gradient = random_values(24, 50 + step);
      scheduled.step({{"w", gradient}}, 0.05, c.factors.momentum_factor, c.factors.weight_decay_factor);
      configured.step({{"w", gradient}}, 0.05);
      untouched.step({{"w", gradient}}, 0.05);
    }
    EXPECT_EQ(scheduled.master("w"), configured.master("w")) << c.plugin;
    EXPECT_NE(scheduled.master("w"), untouched.master("w")) << c.plugin;
  }
}

TEST(OptimizerPlugins, AFactorThatCannotBeHonouredIsRefused) {
  const auto refusal = [](const std::string& plugin, double momentum_factor) {
    OptimizerRunner runner(plugin, "", {{"w", TensorType(MLG_F32, {2, 2})}});
    return sentence_of([&] { runner.step({{"w", std::vector<float>(4, 1.0f)}}, 0.1, momentum_factor, 1.0); });
  };
  EXPECT_TRUE(contains(refusal("adamw", 1.2), "momentum_factor makes beta1 1 or more"));
  EXPECT_TRUE(contains(refusal("muon", 1.2), "momentum_factor makes the momentum 1 or more"));
  EXPECT_TRUE(contains(refusal("schedule_free_adamw", 0.9), "beta1 cannot change during a run"));
}

}  // namespace
}  // namespace mulligan::optimizer_plugins_test
