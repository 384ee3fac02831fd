// Everything that a run of test-time training needs, on the test backend (plugins.h), with the plugins
// of this build.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/ttt/ttt_scorer.h"
#include "tests/support/plugins.h"

namespace mulligan {

class TttRunner {
 public:
  struct Options {
    ModelConfig model;
    LayerOrderKind layer_order = LayerOrderKind::plain;
    DType compute = MLG_F32;
    std::string adapters = "";        // keys of doc_lora as TOML
    std::string optimizer = "adamw";  // plugin of the adapters' optimiser
    std::string optimizer_keys = "";  // its keys as TOML
    std::string optimizer_file = "";  // its library, where it is not one of this build's plugins
    double lr = 0;
    std::string base = "";        // keys of global_sgd as TOML; "none": the base model is not trained
    std::int64_t row_tokens = 0;  // of the base model's rows
    std::shared_ptr<PhiloxDraws> draws = std::make_shared<PhiloxDraws>(1);
    std::string adapter_plugin = "doc_lora";
    std::string adapter_file = "";  // its library, where it is not one of this build's plugins
    int threads = 1;
    std::string transform = "";       // plugin of the score transform; none
    std::string transform_keys = "";  // its keys as TOML
    std::string transform_file = "";  // its library, where it is not one of this build's plugins
    TransformOrder transform_order = TransformOrder::queue;
  };
  explicit TttRunner(const Options& options);

  // f32 values of a parameter, in its own shape.
  void set_parameter(const std::string& name, const std::vector<float>& values);
  // All parameters at their initial values, with everything that starts at zero drawn as well, so that no
  // part is idle.
  void set_random_parameters(std::uint64_t seed);
  std::vector<float> parameter(const std::string& name) const;

  TensorStore& store() { return store_; }
  const BaseModel& model() const { return model_; }
  const TttPlugin& adapters() const { return *adapters_; }
  const TttPlugin* base() const { return base_.get(); }
  const Optimizer& optimizer() const { return *optimizer_; }
  const Transform* transform() const { return transform_.get(); }
  const Optimizer* base_optimizer() const { return base_optimizer_.get(); }
  const Options& options() const { return options_; }
  // For a TttScorer, with this configuration.
  TttSetup setup(const TttConfig& config) const;

 private:
  Options options_;
  std::unique_ptr<Backend> backend_;
  TensorStore store_;
  std::vector<ParameterLayout> layouts_;
  BaseModel model_;
  std::unique_ptr<TttPlugin> adapters_, base_;
  std::unique_ptr<Optimizer> optimizer_, base_optimizer_;
  std::unique_ptr<Transform> transform_;
};

}  // namespace mulligan
