// EMA-Nesterov and the tail average of the arena against the published script: the wrapper's arithmetic on both
// backends, its factor and what becomes of the average by step.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "framework/config/train_config.h"
#include "framework/graph/graph_recorder.h"
#include "framework/plugin/schedule.h"
#include "framework/plugin/wrapper.h"
#include "tests/golden/optim_fixture.h"
#include "tests/golden/value_runner.h"
#include "tests/support/plugin_runner.h"

namespace mulligan::arena_wrapper_golden_test {
namespace {

constexpr double relative = 1e-5;  // of the manifest, f32

// One parameter "w" around which the plugin works, from where an inner optimiser left it.
class Nesterov {
 public:
  Nesterov(GoldenKernels kernels, const std::string& keys, const std::vector<float>& initial)
      : backend_(make_golden_backend(kernels)),
        wrapper_(make_plugin<Wrapper>(MLG_WRAPPER, "ema_nesterov", keys)) {
    backend_->add_kernels(wrapper_->plugin());
    const TensorType type(MLG_F32, {static_cast<std::int64_t>(initial.size())});
    Graph graph;
    const mlg_wrapped_parameter parameter{"w", graph.external("master", type).id,
                                          graph.external("rest", type).id};
    GraphRecorder recorder(graph, "state");
    wrapper_->record(*recorder.table(), std::span(&parameter, 1),
                     graph.external("scalars", TensorType(MLG_F32, {1})).id);
    execution_ = std::make_unique<plugin_test::Execution>(*backend_, std::move(graph));
    for (const char* name : {"master", "rest"}) execution_->store().upload(name, initial);
  }
  // What follows update number `number`, which left `master` at this rate over the configured one.
  void follow(std::int64_t number, const std::vector<float>& master, double rate, double base_rate) {
    const mlg_group_rate group{"w", rate, base_rate};
    std::vector<float> scalars(wrapper_->scalar_count());
    wrapper_->scalars({number, 0, 0, &group, 1}, scalars);
    factor_ = scalars.at(0);
    execution_->store().upload("scalars", scalars);
    execution_->store().upload("master", master);
    execution_->run();
  }
  std::vector<float> floats(const char* name) { return execution_->store().download_as<float>(name); }
  double factor() const { return factor_; }

 private:
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Wrapper> wrapper_;
  std::unique_ptr<plugin_test::Execution> execution_;
  double factor_ = 0;  // of the coming pass
};

class ArenaWrapper : public testing::TestWithParam<GoldenKernels> {};

// The inner optimiser of the fixture is plain gradient descent on a quadratic.
TEST_P(ArenaWrapper, WeightsAheadAndAtRest) {
  const GoldenFixture fixture("arena-optim");
  const nlohmann::json& info = fixture.manifest().at("info").at("wrapper");
  const std::string inner = info.at("inner");
  const double rate = stated(inner, "rate");
  ASSERT_GT(rate, 0);
  const std::vector<double> curvature = fixture.doubles("wrapper.curvature"),
                            shift = fixture.doubles("wrapper.shift"),
                            factors = fixture.doubles("wrapper.factor");
  Nesterov run(GetParam(),
               fmt::format("lookahead = {}\ndecay = {}\nfrom_step = {}\nuntil_step = {}",
                           info.at("lookahead").get<double>(), info.at("decay").get<double>(),
                           info.at("prefill_steps").get<int>(), info.at("rest_steps").get<int>()),
               fixture.floats("wrapper.init"));
  const auto steps = static_cast<std::int64_t>(factors.size());
  const auto expect = [&](const char* name, const std::string& stored, std::int64_t step) {
    expect_near(run.floats(name), row(fixture.doubles(stored), step, steps), relative, relative);
  };
  for (std::int64_t step = 0; step < steps && !testing::Test::HasFatalFailure(); ++step) {
    SCOPED_TRACE(step);
    expect("master", "wrapper.ahead", step);
    EXPECT_NEAR(run.factor(), factors[static_cast<std::size_t>(step)], 1e-7);
    std::vector<float> master = run.floats("master");
    const double scheduled =
        rate * info.at("factor_by_step").at(static_cast<std::size_t>(step)).get<double>();
    for (std::size_t i = 0; i < master.size(); ++i) {
      const auto weight = static_cast<double>(master[i]);
      master[i] = static_cast<float>(weight - scheduled * (curvature[i] * weight - shift[i]));
    }
    run.follow(step + 1, master, scheduled, rate);
    expect("rest", "wrapper.after", step);
    expect("state/w.displacement", "wrapper.buffer", step);
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, ArenaWrapper, testing::Values(GoldenKernels::plain, GoldenKernels::cuda),
                         [](const auto& instance) { return name_of(instance.param); });

// The factor before the pass of a step is that of the rate of the step before. It travels as f32.
TEST(ArenaWrapperBySteps, FactorOfTheLookahead) {
  const GoldenFixture fixture("arena-schedule");
  const nlohmann::json& info = fixture.manifest().at("info").at("sota");
  const std::int64_t total = info.at("train_steps");
  const double base = info.at("initial_lr").at("embed");
  const auto schedule = make_plugin<Schedule>(
      MLG_SCHEDULE, "powercool",
      fmt::format("coefficient = {:.17g}\npower = 1.2", info.at("power_c").at("embed").get<double>()));
  const auto wrapper = make_plugin<Wrapper>(MLG_WRAPPER, "ema_nesterov", "rate_of = 'embed'");
  const std::vector<std::int32_t> steps = fixture.ints("sota.step");
  const std::vector<double> factors = fixture.doubles("sota.lookahead");
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i] == 0) {
      EXPECT_EQ(factors[i], 0.0);  // no update precedes the first pass
      continue;
    }
    const std::int64_t before = steps[i] - 1;
    const mlg_rate rate =
        schedule->rate({before, total, static_cast<double>(before) / static_cast<double>(total), 0}, base);
    const mlg_group_rate groups[] = {{"matrices", 1, 1}, {"embed", rate.lr, base}};
    std::vector<float> scalars(1);
    wrapper->scalars({steps[i], total, 0, groups, 2}, scalars);
    EXPECT_NEAR(static_cast<double>(scalars[0]), factors[i], 6e-8 * factors[i]) << "step " << steps[i];
  }
}

TEST(ArenaWrapperBySteps, WhatBecomesOfTheTailAverage) {
  const GoldenFixture fixture("arena-schedule");
  const std::vector<std::int32_t> steps = fixture.ints("sota.step"),
                                  stored = fixture.ints("sota.tail_ema_updates");
  EmaConfig ema;  // spec 5.6
  ema.from_step = 2400, ema.until_step = 2900, ema.blend = 0.6;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const AverageStep step = average_step(ema, steps[i] + 1);
    EXPECT_EQ(step == AverageStep::begins    ? 1
              : step == AverageStep::follows ? 2
                                             : 0,
              stored[i])
        << "step " << steps[i];
  }
}

}  // namespace
}  // namespace mulligan::arena_wrapper_golden_test
