// The optimisers of the arena (muon in its form there, normuon, muon_h, soap_muon, adamw) against the published
// scripts, on the CPU and on the emulated device.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/golden/golden_fixture.h"
#include "tests/golden/optim_fixture.h"
#include "tests/golden/value_runner.h"
#include "tests/support/plugin_runner.h"

namespace mulligan::arena_optim_golden_test {
namespace {

using plugin_test::OptimizerRunner;

// A name of the fixture, and the plugin that does it.
struct ArenaOptimizer {
  std::string name, plugin, keys;
};

void expect_relative(const std::vector<float>& actual, const std::vector<double>& expected, double relative) {
  double largest = 0;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  expect_near(actual, expected, relative * largest);
}

const std::string soap_constants =
    "trust_floor = 0.45\ntrust_cap = 0.85\nbeta2 = 0.9\nfloor = 'row'\nfloor_ratio = 0.3825\noutward = 0.5\n"
    "cautious_decay = 0.025\nmomentum = 0.95\n";

std::string trust_keys(const nlohmann::json& info) {
  return fmt::format("trust = true\ntrust_floor_until = {}\ntrust_fade_until = {}\n",
                     info.at("floor_end").get<int>(), info.at("fade_end").get<int>());
}

class ArenaOptim : public testing::TestWithParam<GoldenKernels> {
 protected:
  const GoldenFixture fixture{"arena-optim"};
  const nlohmann::json& info() const { return fixture.manifest().at("info"); }

  OptimizerRunner runner(const std::string& plugin, const std::string& keys,
                         const std::vector<OptimizerRunner::Parameter>& parameters) const {
    return OptimizerRunner(plugin, keys, parameters, 2, make_golden_backend(GetParam()));
  }

  std::vector<ArenaOptimizer> optimizers() const {
    const nlohmann::json& rates = info().at("mat").at("rates");
    const auto plain = [&](const char* name, const char* decay) {
      const std::string text = rates.at(name);
      return fmt::format("momentum = {}\n", stated(text, "momentum")) +
             (*decay ? fmt::format("{} = {}\n", decay, stated(text, "weight decay")) : "");
    };
    return {{"muon", "muon",
             plain("muon", "weight_decay") +
                 "momentum_form = 'mean'\nmomentum_dtype = 'fp32'\ncoefficients = '2, -1.5, 0.5'\n"
                 "iterations = 12\n"},
            {"normuon", "normuon", plain("normuon", "weight_decay")},
            {"muonh", "muon_h", plain("muonh", "")},
            {"soap", "soap_muon", soap_constants}};
  }

  // All steps of one matrix; check(step, weights) after each.
  template <typename Check>
  void run(const ArenaOptimizer& optimizer, const std::string& matrix, const std::string& keys,
           Check&& check) const {
    const nlohmann::json& mat = info().at("mat");
    const std::string gradients = "mat.grad." + matrix;
    std::string all = optimizer.keys + keys;
    if (optimizer.name == "soap" && matrix == "attn.proj.weight") all += trust_keys(mat.at("soap_trust"));
    OptimizerRunner run =
        runner(optimizer.plugin, all,
               {{"w", type_of(fixture.shape("mat.init." + matrix)), fixture.floats("mat.init." + matrix)}});
    const double rate = mat.at("initial_rates").at(optimizer.name);
    const std::int64_t steps = fixture.shape(gradients).front();
    for (std::int64_t step = 0; step < steps; ++step) {
      const double momentum =
          optimizer.name == "soap" ? mat.at("soap_momentum_by_step").at(step).get<double>() / 0.95 : 1.0;
      run.step({{"w", row(fixture.floats(gradients), step, steps)}},
               rate * mat.at("lr_factor_by_step").at(step).get<double>(), momentum);
      check(step, run.master("w"));
    }
  }

  std::set<std::string> matrices() const {
    std::set<std::string> names;
    for (const std::string& name : fixture.names()) {
      if (name.rfind("mat.init.", 0) == 0) names.insert(name.substr(9));
    }
    return names;
  }
};

TEST_P(ArenaOptim, Fp32WeightsAfterEachStep) {
  ASSERT_EQ(matrices().size(), 4u);
  for (const ArenaOptimizer& optimizer : optimizers()) {
    for (const std::string& matrix : matrices()) {
      const std::string stored = "mat." + optimizer.name + "." + matrix;
      const std::int64_t steps =
          fixture.shape(stored).front();  // of mlp under soap one: then it is arbitrary
      run(optimizer, matrix, "", [&](std::int64_t step, const std::vector<float>& weights) {
        if (step >= steps || HasFatalFailure()) return;
        SCOPED_TRACE(optimizer.name + ", " + matrix + ", step " + std::to_string(step));
        expect_near(weights, row(fixture.doubles(stored), step, steps), 3e-6);
      });
      if (HasFatalFailure()) return;
    }
  }
}

// As published: the iteration in bf16, the momentum in f32.
TEST_P(ArenaOptim, Bf16ChangeOfTheWeights) {
  int compared = 0;
  for (const ArenaOptimizer& optimizer : optimizers()) {
    for (const std::string& matrix : matrices()) {
      const std::string stored = "mat." + optimizer.name + "." + matrix;
      if (!fixture.has("mat." + optimizer.name + ".bf16." + matrix)) continue;
      const std::int64_t steps = fixture.shape(stored).front();
      std::vector<float> weights;
      run(optimizer, matrix, "compute_dtype = 'bf16'\n",
          [&](std::int64_t, const std::vector<float>& after) { weights = after; });
      const std::vector<double> expected = row(fixture.doubles(stored), steps - 1, steps),
                                initial = fixture.doubles("mat.init." + matrix);
      double error = 0, change = 0;
      for (std::size_t i = 0; i < expected.size(); ++i) {
        error += std::pow(weights[i] - expected[i], 2);
        change += std::pow(expected[i] - initial[i], 2);
      }
      EXPECT_LE(std::sqrt(error / change), 0.02) << stored;
      EXPECT_GT(error, 0.0) << stored;
      ++compared;
    }
  }
  EXPECT_GE(compared, 4);  // one of each optimiser
}

// soap_muon from the middle of a run, where all bases are determined.
TEST_P(ArenaOptim, WarmStateOfSoap) {
  const nlohmann::json& warm = info().at("warm");
  const std::map<std::string, std::string> states = {
      {"momentum", "momentum_buffer"}, {"exp_avg_sq", "second_moment"}, {"row_gg", "row_gram"},
      {"col_gg", "column_gram"},       {"q_row", "row_basis"},          {"q_col", "column_basis"}};
  for (const std::string& matrix : matrices()) {
    const std::string keys =
        matrix == "attn.proj.weight" ? trust_keys(info().at("mat").at("soap_trust")) : "";
    OptimizerRunner run =
        runner("soap_muon", soap_constants + keys,
               {{"w", type_of(fixture.shape("warm.init." + matrix)), fixture.floats("warm.init." + matrix)}});
    for (const auto& [theirs, ours] : states) {
      const std::string name = "warm.state." + matrix + "." + theirs;
      std::vector<float> values = fixture.floats(name);
      if (theirs[0] == 'q') {  // theirs has the basis in columns
        const std::int64_t n = fixture.shape(name).front();
        for (std::int64_t i = 0; i < n; ++i) {
          for (std::int64_t j = 0; j < i; ++j) std::swap(values[i * n + j], values[j * n + i]);
        }
      }
      run.resume("w." + ours, values, warm.at("step_counter").get<std::int64_t>());
    }
    const std::int64_t steps = fixture.shape("warm.grad." + matrix).front();
    for (std::int64_t step = 0; step < steps; ++step) {
      SCOPED_TRACE(matrix + ", step " + std::to_string(step));
      run.step({{"w", row(fixture.floats("warm.grad." + matrix), step, steps)}}, warm.at("lr").get<double>(),
               warm.at("momentum").get<double>() / 0.95);
      expect_near(run.master("w"), row(fixture.doubles("warm." + matrix), step, steps), 3e-6);
      if (HasFatalFailure()) return;
    }
  }
}

// Without momentum, decay and start value the weights become -lr * scale * NS(g) with lr = 1.
TEST_P(ArenaOptim, NewtonSchulzAlone) {
  for (const std::string& input : parts_after(fixture, "ns.")) {
    const std::vector<std::int64_t> shape = fixture.shape("ns." + input + ".in");
    const double scale =
        std::sqrt(std::max(1.0, static_cast<double>(shape[0]) / static_cast<double>(shape[1])));
    for (const std::string norm : {"frobenius", "schatten4"}) {
      for (const std::string compute : {"fp32", "bf16"}) {
        if (compute == "bf16" && input == "rank_one") continue;
        SCOPED_TRACE(input + " " + norm + " " + compute);
        OptimizerRunner run = runner(
            "muon",
            fmt::format(
                "momentum = 0\nmomentum_form = 'mean'\ncoefficients = '2, -1.5, 0.5'\niterations = 12\n"
                "norm = '{}'\ncompute_dtype = '{}'",
                norm, compute),
            {{"w", type_of(shape)}});
        run.step({{"w", fixture.floats("ns." + input + ".in")}}, 1.0);
        std::vector<float> result = run.master("w");
        for (float& value : result) value = static_cast<float>(-value / scale);
        const std::string stored = "ns." + input + "." + norm + (compute == "bf16" ? ".bf16" : "");
        expect_near(result, fixture.doubles(stored),
                    compute == "bf16"     ? 0.02
                    : input == "rank_one" ? 1e-3
                                          : 2e-6);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(ArenaOptim, AdamWithAndWithoutBiasCorrection) {
  for (const std::string variant : {"adamw.baseline", "adamw.sota", "adam.uncorrected"}) {
    const nlohmann::json& settings = info().at(variant);
    const std::string keys = fmt::format(
        "beta1 = {}\nbeta2 = {}\neps = {}\nweight_decay = {}\nbias_correction = {}",
        settings.at("betas").at(0).get<double>(), settings.at("betas").at(1).get<double>(),
        settings.at("eps").get<double>(), settings.value("weight_decay", 0.0), variant != "adam.uncorrected");
    OptimizerRunner run =
        runner("adamw", keys, {{"w", type_of(fixture.shape("adam.init")), fixture.floats("adam.init")}});
    const std::int64_t steps = fixture.shape("adam.grad").front();
    for (std::int64_t step = 0; step < steps; ++step) {
      SCOPED_TRACE(variant + ", step " + std::to_string(step));
      run.step({{"w", row(fixture.floats("adam.grad"), step, steps)}},
               settings.at("lr").at(step).get<double>());
      expect_near(run.master("w"), row(fixture.doubles(variant), step, steps),
                  variant == "adam.uncorrected" ? 2e-5 : 3e-6);
      if (HasFatalFailure()) return;
    }
  }
}

// Weights, gradients and both moments in bf16, as the embedding's.
TEST_P(ArenaOptim, AdamwOfBf16Weights) {
  int compared = 0;
  for (const std::string variant : {"adamw.baseline", "adamw.sota"}) {
    const nlohmann::json& settings = info().at(variant);
    const std::string stored = variant + ".bf16";
    OptimizerRunner run = runner(
        "adamw",
        fmt::format(
            "beta1 = {}\nbeta2 = {}\neps = {}\nweight_decay = {}\nstate_dtype = 'master'\nallow_stall = true",
            settings.at("betas").at(0).get<double>(), settings.at("betas").at(1).get<double>(),
            settings.at("eps").get<double>(), settings.at("weight_decay").get<double>()),
        {{"w", type_of(fixture.shape("adam.init"), MLG_BF16), fixture.floats("adam.init")}});
    const std::int64_t steps = fixture.shape("adam.grad").front();
    for (std::int64_t step = 0; step < steps; ++step) {
      SCOPED_TRACE(fmt::format("{}, step {}", stored, step));
      run.step({{"w", row(fixture.floats("adam.grad"), step, steps)}},
               settings.at("lr").at(step).get<double>());
      expect_near(run.master("w"), row(fixture.doubles(stored), step, steps), 0.05);
      if (HasFatalFailure()) return;
    }
    for (const std::string moment : {"exp_avg", "exp_avg_sq"}) {
      const std::vector<double> expected = fixture.doubles(stored + "." + moment);
      EXPECT_EQ(run.state_dtype("w." + moment), MLG_BF16);
      expect_relative(run.state("w." + moment), expected, 0.05);
    }
    ++compared;
  }
  EXPECT_EQ(compared, 2);
}

// Single kernels of soap_muon by name.
class SoapKernels {
 public:
  SoapKernels(GoldenKernels kernels, const std::function<void(ValueRunner&)>& build)
      : backend_(make_golden_backend(kernels)) {
    backend_->add_kernels(*test_plugin_host().load(MLG_OPTIMIZER, "soap_muon"));
    runner_ = std::make_unique<ValueRunner>(*backend_);
    build(*runner_);
    runner_->prepare();
  }
  ValueRunner& operator()() { return *runner_; }

 private:
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<ValueRunner> runner_;
};

TEST_P(ArenaOptim, TrustAndBlend) {
  for (int i = 0; fixture.has(fmt::format("piece.gate{}.raw", i)); ++i) {
    const auto piece = [i](const char* what) { return fmt::format("piece.gate{}.{}", i, what); };
    const std::vector<std::int64_t> shape = fixture.shape(piece("raw"));
    const std::int64_t n = std::min(shape[0], shape[1]);
    SoapKernels kernels(GetParam(), [&](ValueRunner& run) {
      Graph& graph = run.graph();
      const Value raw = run.input("raw", shape), soap = run.input("soap", shape),
                  scalars = run.input("scalars", {6}), blended = graph.scratch(type_of(shape));
      graph.call("soap_muon_trust",
                 {raw, soap, run.input("grad", shape), scalars, blended, run.input("gate", {2})},
                 {{"agreement", 0.2}});
      const auto norm = [&](Value x, const char* name) {
        const Value gram = graph.scratch(TensorType(MLG_F32, {n, n}));
        const bool tall = shape[0] > shape[1];
        graph.call("matmul", {x, x, gram},
                   {{"transpose_a", tall ? 1.0 : 0.0},
                    {"transpose_b", tall ? 0.0 : 1.0},
                    {"alpha", 1.0},
                    {"beta", 0.0}});
        const Value result = run.input(name, {1});
        graph.call("soap_muon_gram_norm", {gram, result});
        return result;
      };
      norm(soap, "soap_norm");
      graph.call("soap_muon_keep_norm", {raw, norm(raw, "raw_norm"), blended, norm(blended, "blended_norm"),
                                         scalars, run.input("blend", shape)});
    });
    for (const char* name : {"raw", "soap", "grad"}) kernels().set(name, fixture.floats(piece(name)));
    kernels().set("scalars", std::vector<float>{0, 0, 1, 0, 0, 1});  // no bounds
    kernels().run();
    SCOPED_TRACE(i);
    EXPECT_NEAR(kernels().get("gate")[0], fixture.doubles(piece("gate"))[0], 1e-5);
    expect_relative({kernels().get("raw_norm")[0], kernels().get("soap_norm")[0]},
                    fixture.doubles(piece("schatten4")), 1e-5);
    expect_relative(kernels().get("blend"), fixture.doubles(piece("blend")), 1e-5);
    if (HasFatalFailure()) return;
  }
}

TEST_P(ArenaOptim, RadialBrakeAndRadius) {
  for (int i = 0; fixture.has(fmt::format("piece.radial{}.weight", i)); ++i) {
    const auto piece = [i](const char* what) { return fmt::format("piece.radial{}.{}", i, what); };
    const std::vector<std::int64_t> shape = fixture.shape(piece("weight"));
    SoapKernels kernels(GetParam(), [&](ValueRunner& run) {
      run.graph().call("soap_muon_step",
                       {run.input("update", shape), run.input("weight", shape), run.input("scalars", {3})},
                       {{"lr_multiplier", 1.0},
                        {"scale", 1.0},
                        {"outward", 0.5},
                        {"floor", 0.0},
                        {"floor_ratio", 0.0},
                        {"pin", 1.0},
                        {"cautious_decay", 0.0},
                        {"eps", 1e-8}});
    });
    for (const char* name : {"update", "weight"}) kernels().set(name, fixture.floats(piece(name)));
    const double rate = info().at("piece").at("radial_lr");
    kernels().set("scalars", std::vector<float>{static_cast<float>(rate), 0, 1});
    kernels().run();
    SCOPED_TRACE(i);
    const std::vector<float> result = kernels().get("weight");
    expect_relative(result, fixture.doubles(piece("result")), 1e-5);
    double square = 0;
    for (const float value : result) square += std::pow(static_cast<double>(value), 2);
    const double radius = fixture.doubles(piece("radius"))[0];
    EXPECT_NEAR(std::sqrt(square), radius, 1e-5 * radius);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, ArenaOptim, testing::Values(GoldenKernels::plain, GoldenKernels::cuda),
                         [](const auto& instance) { return name_of(instance.param); });

}  // namespace
}  // namespace mulligan::arena_optim_golden_test
