// WindowProgram: forward pass, token losses, gradients and adapter updates for one shape of window.
#pragma once

#include <fmt/format.h>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/adapters/adapter_taps.h"
#include "framework/graph/program.h"
#include "framework/graph/tensor_store.h"
#include "framework/model/parameter_values.h"
#include "framework/ttt/document_plan.h"

namespace mulligan {

// The trained model. Masters, and their copies if the compute dtype differs, lie in `store` under the names of `layouts`.
struct BaseModel {
  TensorStore& store;
  const ModelConfig& config;
  const std::vector<ParameterLayout>& layouts;
  DType compute = MLG_F32;
  LayerOrderKind layer_order = LayerOrderKind::plain;  // recurrent models are scored looped
};

class WindowProgram {
 public:
  // Plans one program in two parts: the forward pass with the token losses, and the backward pass with what
  // `sink` records for complete gradients. Rotary positions count from 0 in each window; the tables hold
  // `rotary_positions` of them. The windows are those of the last shape.documents of `adapter_documents` documents (0:
  // there are no others). With `proposals` each scored position also gives the losses of so many proposed tokens, which
  // nothing differentiates.
  WindowProgram(const BaseModel& model, const TttPlugin& adapters, const std::string& adapter_prefix,
                const WindowShape& shape, std::int64_t rotary_positions, AdapterTaps::GradientSink sink,
                std::int64_t adapter_documents = 0, int proposals = 0);

  const WindowShape& shape() const { return shape_; }
  Program& program() { return *program_; }
  const std::vector<std::shared_ptr<const AdapterTensor>>& adapters() const { return taps_.tensors(); }
  // Whether the adapters' forward pass has kernels that only a plugin knows.
  bool unknown_kernels() const { return taps_.unknown_kernels(); }

  // tokens [T]: the windows. positions [N]: the scored ones as indices into tokens, those of document b from
  // b*C on. targets [N]: the token that follows each of them.
  void set_inputs(std::span<const std::int32_t> tokens, std::span<const std::int32_t> positions,
                  std::span<const std::int32_t> targets);
  // Weight of each scored position's loss in the objective, [N].
  void set_weights(std::span<const float> weights);

  // Computes what the reads below return, each [N]; a read waits.
  void forward() { program_->run_range(0, split_); }
  // The losses of the scored positions in nats, and the logarithms of the softmax's denominators.
  std::vector<float> losses() const { return read("token_loss"); }
  std::vector<float> normalisers() const { return read("normaliser"); }
  // The tokens of proposal `number` (below `proposals`) for each scored position, and their losses.
  void set_proposal(int number, std::span<const std::int32_t> tokens);
  std::vector<float> proposed_losses(int number) const {
    return read(fmt::format("proposed_loss{}", number));
  }
  // Gradients of sum(weights * losses), from the activations of the last forward(), and what the sink
  // recorded for them.
  void update() { program_->run_range(split_, program_->graph().calls().size()); }

 private:
  TensorStore& store_;
  WindowShape shape_;
  std::string prefix_;
  std::string name(std::string_view what) const { return fmt::format("{}/{}", prefix_, what); }
  std::vector<float> read(std::string_view what) const { return store_.download_as<float>(name(what)); }
  AdapterTaps taps_;
  std::unique_ptr<Program> program_;
  std::size_t split_ = 0;
};

// The rotary tables that all window programs of a model share; once, after the first program was made.
void upload_window_rope(const BaseModel& model, std::int64_t rotary_positions);

}  // namespace mulligan
