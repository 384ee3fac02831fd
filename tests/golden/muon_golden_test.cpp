// The optimiser plugin muon and its Newton-Schulz iteration against the public reference.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/golden/golden_fixture.h"
#include "tests/golden/optim_fixture.h"
#include "tests/support/plugin_runner.h"

namespace mulligan::muon_golden_test {
namespace {

using plugin_test::OptimizerRunner;

// Both compute the reference's iteration, and are held to the same tolerances.
const std::vector<std::string> kForms = {"direct", "gram"};

// "polar.rownorm1" -> the keys of the plugin. The fixture's runs use Nesterov momentum without warm-up.
std::string muon_keys(const GoldenFixture& fixture, const std::string& variant, const std::string& compute,
                      const std::string& form) {
  const nlohmann::json& s = settings(fixture, "muon." + variant);
  return fmt::format(
      "momentum = {}\niterations = {}\nweight_decay = {}\ncoefficients = '{}'\nrow_normalize = {}\n"
      "compute_dtype = '{}'\niteration_form = '{}'",
      s.at("momentum").get<double>(), s.at("backend_steps").get<int>(), s.at("weight_decay").get<double>(),
      variant.rfind("polar", 0) == 0 ? "polar_express" : "plain", variant.back() == '1', compute, form);
}

// Runs all steps of a variant; after each calls check(bank, step, steps, weights).
template <typename Check>
void run_muon(const GoldenFixture& fixture, const std::string& variant, const std::string& compute,
              const std::string& form, Check&& check) {
  const std::set<std::string> banks = parts_after(fixture, "muon.init.");
  ASSERT_FALSE(banks.empty());
  std::vector<OptimizerRunner::Parameter> parameters;
  for (const std::string& bank : banks) {
    parameters.push_back(
        {bank, type_of(fixture.shape("muon.init." + bank)), fixture.floats("muon.init." + bank)});
  }
  OptimizerRunner runner("muon", muon_keys(fixture, variant, compute, form), parameters);
  const std::int64_t steps = fixture.shape("muon.grads." + *banks.begin()).front();
  for (std::int64_t step = 0; step < steps; ++step) {
    std::map<std::string, std::vector<float>> gradients;
    for (const std::string& bank : banks)
      gradients[bank] = row(fixture.floats("muon.grads." + bank), step, steps);
    runner.step(gradients, settings(fixture, "muon." + variant).at("lr").get<double>());
    for (const std::string& bank : banks) check(bank, step, steps, runner.master(bank));
  }
}

std::vector<std::string> muon_variants(const GoldenFixture& fixture) {
  std::vector<std::string> variants;
  for (const auto& [name, value] : fixture.manifest().at("settings_and_checks").items()) {
    if (name.rfind("muon.", 0) == 0) variants.push_back(name.substr(5));
  }
  return variants;
}

TEST(MuonGolden, Fp32WeightsAfterEachStep) {
  const GoldenFixture fixture("optim");
  ASSERT_EQ(muon_variants(fixture).size(), 4u);
  for (const std::string& form : kForms) {
    for (const std::string& variant : muon_variants(fixture)) {
      run_muon(fixture, variant, "fp32", form,
               [&](const std::string& bank, std::int64_t step, std::int64_t steps,
                   const std::vector<float>& weights) {
                 SCOPED_TRACE(form + ", " + variant + ", bank " + bank + ", step " + std::to_string(step));
                 const std::string stored = "muon." + variant + ".params_f64." + bank;
                 expect_near(weights, row(fixture.doubles(stored), step, steps), 3e-6);
               });
      if (HasFatalFailure()) return;
    }
  }
}

// How far a bf16 run's weights moved from where the reference's did, relative to how far they moved.
double bf16_error(const GoldenFixture& fixture, const std::string& variant, const std::string& form) {
  double error = 0.0, change = 0.0;
  run_muon(
      fixture, variant, "bf16", form,
      [&](const std::string& bank, std::int64_t step, std::int64_t steps, const std::vector<float>& weights) {
        SCOPED_TRACE(form + ", " + variant + ", bank " + bank + ", step " + std::to_string(step));
        const std::string stored = "muon." + variant + ".params_bf16." + bank;
        const std::vector<double> expected = row(fixture.doubles(stored), step, steps);
        expect_near(weights, expected, 0.02);
        if (step + 1 < steps) return;
        const std::vector<double> initial = fixture.doubles("muon.init." + bank);
        for (std::size_t i = 0; i < expected.size(); ++i) {
          error += std::pow(weights[i] - expected[i], 2);
          change += std::pow(expected[i] - initial[i], 2);
        }
      });
  return std::sqrt(error / change);
}

// bf16 rounding makes single elements differ, so the whole change since the start is compared in the
// mean square too.
TEST(MuonGolden, Bf16ChangeOfTheWeights) {
  const GoldenFixture fixture("optim");
  for (const std::string& form : kForms) {
    for (const std::string& variant : muon_variants(fixture)) {
      const double allowed = variant.rfind("polar", 0) == 0 ? 0.08 : 0.05;
      const double relative = bf16_error(fixture, variant, form);
      EXPECT_LE(relative, allowed) << form << ", " << variant;
      EXPECT_GT(relative, 0.0) << form << ", " << variant;
      if (HasFatalFailure()) return;
    }
  }
}

// The iteration alone: without momentum, decay and start value, the weights become -lr * scale * NS(g) with
// lr = 1.
TEST(MuonGolden, NewtonSchulzAlone) {
  const GoldenFixture fixture("optim");
  const std::vector<std::pair<std::string, std::string>> combinations = {
      {"fp32", "direct"}, {"fp32", "gram"}, {"bf16", "direct"}, {"bf16", "gram"}};
  for (const std::string& input : parts_after(fixture, "ns.")) {
    const std::vector<std::int64_t> shape = fixture.shape("ns." + input + ".in");
    const double rows = static_cast<double>(shape[shape.size() - 2]),
                 columns = static_cast<double>(shape.back());
    const double scale = std::sqrt(std::max(1.0, rows / columns));
    for (const std::string kind : {"polar", "plain"}) {
      for (const auto& [compute, form] : combinations) {
        SCOPED_TRACE(input + " " + kind + " " + compute + " " + form);
        OptimizerRunner runner(
            "muon",
            fmt::format("momentum = 0\ncoefficients = '{}'\ncompute_dtype = '{}'\niteration_form = '{}'",
                        kind == "polar" ? "polar_express" : "plain", compute, form),
            {{"w", type_of(shape)}});
        runner.step({{"w", fixture.floats("ns." + input + ".in")}}, 1.0);
        std::vector<float> result = runner.master("w");
        for (float& value : result) value = static_cast<float>(-value / scale);
        const std::string stored = "ns." + input + "." + kind + (compute == "fp32" ? ".f64" : ".bf16");
        expect_near(result, fixture.doubles(stored), compute == "fp32" ? 2e-5 : 0.15);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(MuonGolden, MomentumWarmUp) {
  const GoldenFixture fixture("schedules");
  const nlohmann::json& info = fixture.manifest().at("info").at("muon_momentum");
  const OptimizerRunner runner(
      "muon",
      fmt::format("momentum_warmup_start = {}\nmomentum = {}\nmomentum_warmup_steps = {}",
                  info.at("start").get<double>(), info.at("end").get<double>(),
                  info.at("warmup_steps").get<int>()),
      {{"w", TensorType(MLG_F32, {2, 2})}});
  const std::vector<std::int32_t> steps = fixture.ints("muon_momentum.steps");
  const std::vector<double> values = fixture.doubles("muon_momentum.value");
  for (std::size_t i = 0; i < steps.size(); ++i) {
    // The fixture counts updates done, the plugin the coming one. The value travels as f32.
    EXPECT_EQ(runner.scalars(steps[i] + 1, 0.026).at(1), static_cast<float>(values[i]))
        << "step " << steps[i];
  }
}

}  // namespace
}  // namespace mulligan::muon_golden_test
