// The optimiser plugins adamw, muon and sgd, and the kernels for clipping and averaging, against the public
// reference.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/golden/golden_fixture.h"
#include "tests/support/plugin_runner.h"

namespace mulligan {
namespace {

using plugin_test::OptimizerRunner;

TensorType type_of(const std::vector<std::int64_t>& shape, DType dtype = MLG_F32) {
  TensorType type(dtype, {});
  type.rank = static_cast<int>(shape.size());
  std::copy(shape.begin(), shape.end(), type.dims.begin());
  return type;
}

// Row `index` along the first dimension of a stored tensor.
template <typename T>
std::vector<T> row(const std::vector<T>& values, std::int64_t index, std::int64_t count) {
  const auto length = static_cast<std::int64_t>(values.size()) / count;
  return {values.begin() + index * length, values.begin() + (index + 1) * length};
}

void expect_near(const std::vector<float>& actual, const std::vector<double>& expected, double tolerance,
                 double relative = 0.0) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], std::max(tolerance, relative * std::abs(expected[i])))
        << "element " << i;
  }
}

// What follows `prefix` in the names of the fixture's tensors, up to the next point.
std::set<std::string> parts_after(const GoldenFixture& fixture, const std::string& prefix) {
  std::set<std::string> parts;
  for (const std::string& name : fixture.names()) {
    if (name.rfind(prefix, 0) == 0)
      parts.insert(name.substr(prefix.size(), name.find('.', prefix.size()) - prefix.size()));
  }
  return parts;
}

const nlohmann::json& settings(const GoldenFixture& fixture, const std::string& name) {
  return fixture.manifest().at("settings_and_checks").at(name);
}

TEST(AdamwGolden, WeightsAndMomentsAfterEachStep) {
  const GoldenFixture fixture("optim");
  const std::set<std::string> names = parts_after(fixture, "adamw.init.");
  for (const std::string variant : {"base", "ttt"}) {
    SCOPED_TRACE(variant);
    const nlohmann::json& s = settings(fixture, "adamw." + variant);
    std::vector<OptimizerRunner::Parameter> parameters;
    for (const std::string& name : names) {
      parameters.push_back(
          {name, type_of(fixture.shape("adamw.init." + name)), fixture.floats("adamw.init." + name)});
    }
    OptimizerRunner runner("adamw",
                           fmt::format("beta1 = {}\nbeta2 = {}\neps = {}\nweight_decay = {}",
                                       s.at("betas").at(0).get<double>(), s.at("betas").at(1).get<double>(),
                                       s.at("eps").get<double>(), s.at("weight_decay").get<double>()),
                           parameters);
    const std::int64_t steps = fixture.shape("adamw.grads." + *names.begin()).front();
    for (std::int64_t step = 0; step < steps; ++step) {
      SCOPED_TRACE(step);
      std::map<std::string, std::vector<float>> gradients;
      for (const std::string& name : names) {
        gradients[name] = row(fixture.floats("adamw.grads." + name), step, steps);
      }
      runner.step(gradients, s.at("lr").get<double>());
      for (const std::string& name : names) {
        const auto expected = [&](const std::string& what) {
          return row(fixture.doubles("adamw." + variant + "." + what + "." + name), step, steps);
        };
        expect_near(runner.master(name), expected("param"), 3e-6);
        // Moments may be large: then f32 itself is coarser than the absolute tolerance.
        expect_near(runner.state(name + ".exp_avg"), expected("m"), 3e-6, 3e-6);
        expect_near(runner.state(name + ".exp_avg_sq"), expected("v"), 3e-6, 3e-6);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// "polar.rownorm1" -> the keys of the plugin. The fixture's runs use Nesterov momentum without warm-up.
std::string muon_keys(const GoldenFixture& fixture, const std::string& variant, const std::string& compute) {
  const nlohmann::json& s = settings(fixture, "muon." + variant);
  return fmt::format(
      "momentum = {}\niterations = {}\nweight_decay = {}\ncoefficients = '{}'\nrow_normalize = {}\n"
      "compute_dtype = '{}'",
      s.at("momentum").get<double>(), s.at("backend_steps").get<int>(), s.at("weight_decay").get<double>(),
      variant.rfind("polar", 0) == 0 ? "polar_express" : "plain", variant.back() == '1', compute);
}

// Runs all steps of a variant; after each calls check(bank, step, steps, weights).
template <typename Check>
void run_muon(const GoldenFixture& fixture, const std::string& variant, const std::string& compute,
              Check&& check) {
  const std::set<std::string> banks = parts_after(fixture, "muon.init.");
  ASSERT_FALSE(banks.empty());
  std::vector<OptimizerRunner::Parameter> parameters;
  for (const std::string& bank : banks) {
    parameters.push_back(
        {bank, type_of(fixture.shape("muon.init." + bank)), fixture.floats("muon.init." + bank)});
  }
  OptimizerRunner runner("muon", muon_keys(fixture, variant, compute), parameters);
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
  for (const std::string& variant : muon_variants(fixture)) {
    run_muon(fixture, variant, "fp32",
             [&](const std::string& bank, std::int64_t step, std::int64_t steps,
                 const std::vector<float>& weights) {
               SCOPED_TRACE(variant + ", bank " + bank + ", step " + std::to_string(step));
               const std::string stored = "muon." + variant + ".params_f64." + bank;
               expect_near(weights, row(fixture.doubles(stored), step, steps), 3e-6);
             });
    if (HasFatalFailure()) return;
  }
}

// bf16 rounding makes single elements differ, so the whole change since the start is compared in the mean
// square too.
TEST(MuonGolden, Bf16ChangeOfTheWeights) {
  const GoldenFixture fixture("optim");
  for (const std::string& variant : muon_variants(fixture)) {
    const double allowed = variant.rfind("polar", 0) == 0 ? 0.08 : 0.05;
    double error = 0.0, change = 0.0;
    run_muon(fixture, variant, "bf16",
             [&](const std::string& bank, std::int64_t step, std::int64_t steps,
                 const std::vector<float>& weights) {
               SCOPED_TRACE(variant + ", bank " + bank + ", step " + std::to_string(step));
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
    const double relative = std::sqrt(error / change);
    EXPECT_LE(relative, allowed) << variant;
    EXPECT_GT(relative, 0.0) << variant;
    if (HasFatalFailure()) return;
  }
}

// The iteration alone: without momentum, decay and start value, the weights become -lr * scale * NS(g) with
// lr = 1.
TEST(MuonGolden, NewtonSchulzAlone) {
  const GoldenFixture fixture("optim");
  for (const std::string& input : parts_after(fixture, "ns.")) {
    const std::vector<std::int64_t> shape = fixture.shape("ns." + input + ".in");
    const double rows = static_cast<double>(shape[shape.size() - 2]),
                 columns = static_cast<double>(shape.back());
    const double scale = std::sqrt(std::max(1.0, rows / columns));
    for (const std::string kind : {"polar", "plain"}) {
      for (const std::string compute : {"fp32", "bf16"}) {
        SCOPED_TRACE(input + " " + kind + " " + compute);
        OptimizerRunner runner("muon",
                               fmt::format("momentum = 0\ncoefficients = '{}'\ncompute_dtype = '{}'",
                                           kind == "polar" ? "polar_express" : "plain", compute),
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

// The fixture's gradients, clipped by the backend's kernels as the trainer does it.
class Clipping {
 public:
  Clipping(const std::map<std::string, std::vector<std::int64_t>>& shapes, double max_norm)
      : backend_(plugin_test::make_backend(nullptr)) {
    Graph graph;
    const TensorType one(MLG_F32, {1});
    const Value total = graph.external("total", one.as(MLG_F64)), scale = graph.external("scale", one);
    for (const auto& [name, shape] : shapes) {
      graph.call("sum_squares_f64", {graph.external(name, type_of(shape)), total});
    }
    graph.call("clip_scale", {total, graph.external("norm", one), scale}, {{"max_norm", max_norm}});
    for (const auto& [name, shape] : shapes) {
      graph.call("scale_by", {graph.external(name, type_of(shape)), scale});
    }
    execution_ = std::make_unique<plugin_test::Execution>(*backend_, std::move(graph));
  }
  // Returns the norm before clipping; `gradients` are replaced by the clipped ones.
  float run(std::map<std::string, std::vector<float>>& gradients) {
    TensorStore& store = execution_->store();
    store.zero("total");
    for (const auto& [name, values] : gradients) store.upload(name, values);
    execution_->run();
    for (auto& [name, values] : gradients) values = store.download_as<float>(name);
    return store.download_as<float>("norm").at(0);
  }

 private:
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<plugin_test::Execution> execution_;
};

std::map<std::string, std::vector<std::int64_t>> shapes_of(const GoldenFixture& fixture,
                                                           const std::string& prefix) {
  std::map<std::string, std::vector<std::int64_t>> shapes;
  for (const std::string& name : parts_after(fixture, prefix)) shapes[name] = fixture.shape(prefix + name);
  return shapes;
}

TEST(SgdGolden, ClippedGradientsMomentumAndWeights) {
  const GoldenFixture fixture("optim");
  const auto shapes = shapes_of(fixture, "sgd.init.");
  std::vector<OptimizerRunner::Parameter> parameters;
  for (const auto& [name, shape] : shapes) {
    parameters.push_back({name, type_of(shape), fixture.floats("sgd.init." + name)});
  }
  const nlohmann::json& s = settings(fixture, "sgd");
  Clipping clipping(shapes, s.at("clip").get<double>());
  OptimizerRunner runner("sgd", fmt::format("momentum = {}", s.at("momentum").get<double>()), parameters);
  const std::vector<double> lr = fixture.doubles("sgd.lr"), norms = fixture.doubles("sgd.grad_norm");
  const auto steps = static_cast<std::int64_t>(lr.size());
  for (std::int64_t step = 0; step < steps; ++step) {
    SCOPED_TRACE(step);
    std::map<std::string, std::vector<float>> gradients;
    for (const auto& [name, shape] : shapes) {
      gradients[name] = row(fixture.floats("sgd.grads." + name), step, steps);
    }
    EXPECT_NEAR(clipping.run(gradients), norms[step], 1e-6 * std::max(1.0, norms[step]));
    runner.step(gradients, lr[step]);
    for (const auto& [name, shape] : shapes) {
      const auto expected = [&](const std::string& what) {
        return row(fixture.doubles("sgd." + what + "." + name), step, steps);
      };
      expect_near(gradients.at(name), expected("clipped"), 1e-6, 1e-6);
      expect_near(runner.state(name + ".momentum_buffer"), expected("momentum"), 1e-6, 1e-6);
      expect_near(runner.master(name), expected("param"), 1e-6, 1e-6);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(ClipGolden, NormAndClippedGradients) {
  const GoldenFixture fixture("optim");
  for (const std::string which : {"above", "below"}) {
    const std::string prefix = "clip03." + which;
    const auto shapes = shapes_of(fixture, prefix + ".in.");
    ASSERT_FALSE(shapes.empty());
    std::map<std::string, std::vector<float>> gradients;
    for (const auto& [name, shape] : shapes) gradients[name] = fixture.floats(prefix + ".in." + name);
    const double norm = fixture.doubles(prefix + ".norm").at(0);
    EXPECT_NEAR(Clipping(shapes, 0.3).run(gradients), norm, 1e-6 * std::max(1.0, norm)) << which;
    for (const auto& [name, shape] : shapes) {
      expect_near(gradients.at(name), fixture.doubles(prefix + ".out." + name), 1e-6);
    }
  }
}

TEST(EmaGolden, AverageAfterEachStep) {
  const GoldenFixture fixture("optim");
  const std::vector<std::int64_t> shape = fixture.shape("ema.params");
  const std::vector<std::int64_t> one_row(shape.begin() + 1, shape.end());
  const std::vector<float> weights = fixture.floats("ema.params");
  const std::vector<double> expected = fixture.doubles("ema.out");
  const auto backend = plugin_test::make_backend(nullptr);
  Graph graph;
  graph.call("lerp_into",
             {graph.external("average", type_of(one_row)), graph.external("weights", type_of(one_row))},
             {{"decay", settings(fixture, "ema").at("decay").get<double>()}});
  plugin_test::Execution execution(*backend, std::move(graph));
  execution.store().upload("average", row(weights, 0, shape[0]));
  for (std::int64_t step = 1; step < shape[0]; ++step) {
    SCOPED_TRACE(step);
    execution.store().upload("weights", row(weights, step, shape[0]));
    execution.run();
    expect_near(execution.store().download_as<float>("average"), row(expected, step - 1, shape[0] - 1), 1e-6);
  }
}

}  // namespace
}  // namespace mulligan
