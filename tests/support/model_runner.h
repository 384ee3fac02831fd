// Runs the model once on a backend for tests: parameters in, logits, losses and gradients out.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/config/train_config.h"
#include "framework/graph/program.h"
#include "framework/model/elements/stages.h"
#include "framework/model/forward.h"
#include "tests/support/plugins.h"

namespace mulligan {

class ModelRunner {
 public:
  struct Options {
    LayerOrderKind layer_order = LayerOrderKind::plain;
    bool gradients = true;
    bool keep_points = false;                       // keep every named point of the forward pass
    std::int64_t row_length = 0;                    // 0: one packed row
    LossReduction reduction = LossReduction::mean;  // what gradients are of
    DType compute = MLG_F32;
    HeadUse head = HeadUse::training;  // what the logits are for
    std::size_t segments = 0;          // entries of cu_seqlens
  };
  ModelRunner(Backend& backend, const ModelConfig& model, std::int64_t tokens, const Options& options);

  void set_parameter(const std::string& name, const std::vector<float>& values);
  // Tables for the rotary embedding; without a call the model's own are used.
  void set_rope(const std::vector<float>& cos, const std::vector<float>& sin);
  // Runs forward (and backward of the reduced token loss).
  void run(const std::vector<std::int32_t>& tokens, const std::vector<std::int32_t>& targets,
           const std::vector<std::int32_t>& cu_seqlens);

  std::vector<float> pre_logits() const { return store_.download_as<float>("out/pre_logits"); }
  std::vector<float> logits() const { return store_.download_as<float>("out/logits"); }
  std::vector<float> token_loss() const { return store_.download_as<float>("out/token_loss"); }
  std::vector<float> gradient(const std::string& name) const;
  // Names of the points in their order: "layers.SLOT.NAME", or "NAME" outside of blocks.
  const std::vector<std::string>& points() const { return points_; }
  std::vector<float> point(const std::string& name) const;
  const std::vector<ParameterLayout>& parameters() const { return layouts_; }
  double mean_loss() const;
  // How often the program calls a kernel.
  std::int64_t calls(std::string_view kernel) const;

 private:
  void build(const ModelConfig& model, std::int64_t tokens, const Options& options);

  Backend& backend_;
  TensorStore store_;
  SharedArena arena_;
  std::vector<ParameterLayout> layouts_;
  std::vector<std::string> points_;
  std::unique_ptr<Program> refresh_, program_;
};

}  // namespace mulligan
