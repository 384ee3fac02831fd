// A task that is loaded into a model has the bits of unpacked().
#include <gtest/gtest.h>

#include "framework/run/weights.h"
#include "lab/task_vectors/pack.h"
#include "tests/support/plugins.h"
#include "tests/support/sentence.h"
#include "tests/support/small_config.h"
#include "tests/unit/task_vectors_support.h"

namespace mulligan::task_vectors::task_vectors_device_test {
namespace {

ModelConfig small_model(int layers) {
  return small_config({"model.vocabulary=37", "model.width=12", "model.heads=2",
                       "model.layers=" + std::to_string(layers)})
      .config.model;
}

Model random_model(const ModelConfig& config, const std::string& name, double deviation) {
  test_support::NamedValues values;
  for (const ParameterSpec& spec : model_parameters(config)) {
    values.emplace_back(
        spec.name, test_support::normal_numbers(static_cast<std::size_t>(spec.type.elements()), deviation,
                                                name + "/" + spec.name));
  }
  std::ranges::sort(values);
  Model model = test_support::model_of(name, values);
  for (Parameter& parameter : model.parameters) {
    const auto specs = model_parameters(config);
    const TensorType& type = std::ranges::find(specs, parameter.name, &ParameterSpec::name)->type;
    parameter.shape.assign(type.dims.begin(), type.dims.begin() + type.rank);
  }
  return model;
}

class LoadTask : public ::testing::Test {
 protected:
  // The masters, one or two of them bf16, after load_task.
  void expect_bits_of_unpacked(const TaskVectors& vectors, std::size_t task) {
    TensorStore store(*backend_);
    const auto layouts = parameter_layouts(config_, MLG_F32, {{layout_in_bf16_, MLG_BF16}});
    for (const ParameterLayout& layout : layouts)
      store.create(master_name(layout.spec.name), layout.spec.type.as(layout.master));
    load_task(vectors, "v", base_, task, store, layouts);
    const Model host = unpacked(vectors, "v", base_, task);
    for (std::size_t i = 0; i < host.parameters.size(); ++i) {
      const std::string& name = host.parameters[i].name;
      const TensorType& type = store.type(master_name(name));
      std::vector<std::byte> bytes(static_cast<std::size_t>(type.bytes()));
      store.download(master_name(name), bytes);
      EXPECT_EQ(bytes, encode_floats(host.values(i), type.dtype)) << name;
    }
  }
  ModelConfig config_ = small_model(2);
  std::string layout_in_bf16_ = model_parameters(config_).front().name;
  Model base_ = random_model(config_, "base", 1), x_ = random_model(config_, "x", 1.001),
        y_ = random_model(config_, "y", 1.001);
  std::unique_ptr<Backend> backend_ = make_cpu_backend(2);
};

TEST_F(LoadTask, HasTheBitsOfUnpacked) {
  for (const PackOptions& options :
       {PackOptions{4, 0}, PackOptions{8, 0}, PackOptions{2, 3}, PackOptions{3, 5}}) {
    const TaskVectors vectors = pack(base_, {x_, y_}, options);
    for (const std::size_t task : std::vector<std::size_t>{0, 1}) {
      SCOPED_TRACE(::testing::Message() << options.bits << " and " << options.base_bits << ", " << task);
      expect_bits_of_unpacked(vectors, task);
    }
  }
}

TEST_F(LoadTask, RefusesAnotherBaseAndAnotherModel) {
  const TaskVectors vectors = pack(base_, {x_}, {});
  const auto refusal = [&](const Model& base, const ModelConfig& config) {
    TensorStore store(*backend_);
    const auto layouts = parameter_layouts(config, MLG_F32);
    for (const ParameterLayout& layout : layouts)
      store.create(master_name(layout.spec.name), layout.spec.type);
    return sentence_of([&] { load_task(vectors, "v", base, 0, store, layouts); });
  };
  EXPECT_TRUE(contains(refusal(y_, config_), "name that base"));
  EXPECT_TRUE(contains(refusal(base_, small_model(3)), "other parameters"));
}

}  // namespace
}  // namespace mulligan::task_vectors::task_vectors_device_test
