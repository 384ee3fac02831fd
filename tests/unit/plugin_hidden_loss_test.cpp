// A loss that reads the final hidden state, through a whole model: the gradient of every parameter is that of
// the loss with its penalty, by finite differences along it.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>

#include "framework/graph/program.h"
#include "framework/model/initialise.h"
#include "framework/model/packed_inputs.h"
#include "framework/step/step_graphs.h"
#include "tests/support/built.h"
#include "tests/support/plugins.h"
#include "tests/support/small_config.h"

namespace mulligan::plugin_hidden_loss_test {
namespace {

constexpr std::int64_t tokens = 12;

// One micro step of training with a loss of the test's plugins.
class MicroStep {
 public:
  explicit MicroStep(const std::string& keys)
      : model_(small_model(19, 2)), backend_(make_cpu_backend(1)), store_(*backend_) {
    const PluginHandle plugin = test_plugin_host().load(
        PluginKind::loss, "", test_support::built("flawed_plugins") / "mulligan_hidden_loss.so");
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

  // How far the gradient of the parameter is from the slope along it, relative to it; absent where it is so
  // small that the differences are noise.
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

TEST(HiddenLoss, AWrongGradientOfTheHiddenStateShowsInTheModel) {
  MicroStep step("weight = 200\ngradient_factor = 0.5");
  EXPECT_GT(step.error_of("qo_bank").value(), 0.1);
}

TEST(HiddenLoss, ThePenaltyIsInTheLoss) {
  EXPECT_GT(MicroStep("weight = 200").loss_at({}, 0), MicroStep("weight = 0").loss_at({}, 0) + 0.01);
}

}  // namespace
}  // namespace mulligan::plugin_hidden_loss_test
