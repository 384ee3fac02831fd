// The optimiser plugins adamw and sgd, and the kernels for clipping and averaging, against
// the public reference.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/golden/golden_fixture.h"
#include "tests/golden/optim_fixture.h"
#include "tests/support/plugin_runner.h"

namespace mulligan::optim_golden_test {
namespace {

using plugin_test::OptimizerRunner;

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
        if (s.at("betas").at(0).get<double>() > 0) {
          expect_near(runner.state(name + ".exp_avg"), expected("m"), 3e-6, 3e-6);
        } else {  // there is no such state: the first moment is the gradient
          expect_near(gradients[name], expected("m"), 3e-6, 3e-6);
        }
        expect_near(runner.state(name + ".exp_avg_sq"), expected("v"), 3e-6, 3e-6);
        if (HasFatalFailure()) return;
      }
    }
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
}  // namespace mulligan::optim_golden_test
