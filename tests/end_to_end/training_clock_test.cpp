// The training clock of a device that works later than the host: decisions by time use the device's time, whatever
// train.log_every is. The device's time is a number here (paced_device).
#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "framework/artifact/make_artifact.h"
#include "framework/config/config_report.h"
#include "framework/plugin/quantizer.h"
#include "framework/run/loaded_model.h"
#include "tests/end_to_end/tiny_run.h"
#include "tests/support/plugins.h"

namespace mulligan::end_to_end::training_clock_test {
namespace {

constexpr const char* kDevice = MULLIGAN_PACED_DEVICE;
constexpr double kBudget = 600, kPlain = 0.0867, kLooped = 0.1298, kLoopedFrom = 0.35;  // the record's

double device_now() {
  static void* const library = dlopen(kDevice, RTLD_NOW);
  static const auto now = reinterpret_cast<double (*)()>(dlsym(library, "paced_device_now"));
  return now();
}

struct Trained {
  double seconds = 0;  // of the training clock, at the end of the last step
  std::int64_t steps = 0, looped_from = 0;
  double looped_fraction = 0;  // that the second phase was decided by
  double largest_share = 0;    // of the budget, that a step was decided by
};

// A run of the record's length and step times.
Trained train(
    std::int64_t log_every, const std::vector<std::string>& more = {},
    const std::function<void(const nlohmann::json&)>& each_step = [](const auto&) {}) {
  TinyRun tiny(3);
  std::vector<std::string> keys = {"run.directory=" + tiny.next_directory(),
                                   "backend.plugin=paced_device",
                                   fmt::format("backend.path={}", kDevice),
                                   "backend.boundaries_bytes=1280",  // of 256 tokens
                                   fmt::format("backend.step_seconds={}", kPlain),
                                   fmt::format("backend.later_step_seconds={}", kLooped),
                                   fmt::format("backend.later_from={}", kLoopedFrom * kBudget),
                                   fmt::format("model.loop.start_fraction={}", kLoopedFrom),
                                   "train.steps=0",
                                   fmt::format("train.budget_seconds={}", kBudget),
                                   fmt::format("train.log_every={}", log_every)};
  keys.insert(keys.end(), more.begin(), more.end());
  LoadedConfig loaded = tiny.config(keys);
  TrainOptions options;
  options.console = nullptr;
  options.clock = device_now;
  const RunResult result = mulligan::train(loaded, test_plugin_host(), options);
  Trained trained;
  trained.steps = result.steps;
  for (const nlohmann::json& step : events_of(result.directory, "step")) {
    each_step(step);
    trained.seconds = step.at("elapsed_seconds");
    trained.largest_share = std::max(trained.largest_share, step.at("budget_fraction").get<double>());
  }
  for (const nlohmann::json& phase : events_of(result.directory, "phase_start")) {
    trained.looped_from = phase.at("step");
    trained.looped_fraction = phase.at("budget_fraction");
  }
  return trained;
}

class TrainingClock : public testing::TestWithParam<int> {};

TEST_P(TrainingClock, EndsTrainingWithinAStepOfItsLimit) {
  const Trained trained = train(GetParam());
  RecordProperty("seconds", fmt::format("{:.2f}", trained.seconds));
  EXPECT_LE(trained.seconds, kBudget);
  EXPECT_GT(trained.seconds, kBudget - kLooped);
  // The phases change with the step that begins at their share of the device's time.
  const double begin = static_cast<double>(trained.looped_from) * kPlain;
  EXPECT_GE(begin, kLoopedFrom * kBudget);
  EXPECT_LT(begin, kLoopedFrom * kBudget + 2 * kPlain);
  EXPECT_NEAR(trained.looped_fraction, begin / kBudget, kPlain / kBudget);
}

INSTANTIATE_TEST_SUITE_P(LogEvery, TrainingClock, testing::Values(1, 10, 50, 500));

// The rates of a warm-up by the clock. The second step's share of it is known: the host has waited for the first.
TEST(TrainingClockWarmup, RisesInALineFromTheSecondStep) {
  constexpr double budget = 20, share = 0.5;
  std::vector<double> rates;
  train(1,
        {fmt::format("train.budget_seconds={}", budget), "schedule.plugin=cosine",
         fmt::format("schedule.warmup_fraction={}", share)},
        [&](const nlohmann::json& step) { rates.push_back(step.at("lr").begin()->get<double>()); });
  const double full = *std::ranges::max_element(rates);
  ASSERT_GT(rates.size(), 100u);
  EXPECT_GT(rates[0], 0);
  for (std::size_t step = 1; step < 100; ++step) {
    const double line = static_cast<double>(step + 1) * kPlain / (budget * share);
    EXPECT_NEAR(rates[step] / full, line, 0.02 * line + 1e-4) << "step " << step + 1;
  }
}

// What a device makes for its first kernels is made before calibration's seconds are counted.
TEST(CalibrationClock, BeginsWithTheFirstBatch) {
  TinyRun tiny(3);
  const std::vector<std::string> paced = {"backend.plugin=paced_device",
                                          fmt::format("backend.path={}", kDevice), "backend.cold_seconds=7"};
  LoadedConfig loaded =
      parse_run_config(print_resolved(tiny.config({})) + quantize_section, "with quantize", paced);
  resolve_run_plugins(loaded, test_plugin_host(), PluginUse::quantize);
  const RunPlugins plugins = make_backend_plugin(loaded, test_plugin_host());
  const Quantizer quantizer(test_plugin_host().load(MLG_QUANTIZER, loaded.config.quantize->table.plugin),
                            loaded.plugin("quantize"));
  ASSERT_TRUE(quantizer.needs_hessian());
  LoadedModel model(*plugins.backend, loaded.config);
  const MadeArtifact made =
      make_artifact(loaded, {.model = model, .quantizer = quantizer, .clock = device_now});
  EXPECT_EQ(made.setup_seconds, 7);
  EXPECT_EQ(made.calibrate_seconds, 0);
}

}  // namespace
}  // namespace mulligan::end_to_end::training_clock_test
