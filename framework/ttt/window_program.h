// WindowProgram: forward pass, token losses, gradients and adapter updates for one shape of window.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/adapters/adapter_taps.h"
#include "framework/graph/program.h"
#include "framework/ttt/base_model.h"

namespace mulligan {

// B consecutive windows of R tokens, T = B*R. Each scores C positions, N = B*C.
struct WindowShape {
  std::int64_t documents = 0;  // B
  std::int64_t context = 0;    // R
  std::int64_t scored = 0;     // C
  auto operator<=>(const WindowShape&) const = default;
  std::int64_t tokens() const { return documents * context; }
  std::int64_t positions() const { return documents * scored; }
};

class WindowProgram {
 public:
  // What happens to an adapter's complete gradient: an optimiser's update in the graph, or a copy for a test.
  using GradientSink = AdapterTaps::GradientSink;

  // Plans one program in two parts: the forward pass with the token losses, and the backward pass with what
  // `sink` records. Rotary positions count from 0 in each window; the tables hold `rotary_positions` of them.
  // `adapters` null: no taps, no second part. Base parameters get no gradient. Makes the tensors it needs in
  // the model's store. The windows are those of the last shape.documents of `adapter_documents` documents
  // (0: there are no others). With `proposals` each scored position also gives the losses of so many proposed
  // tokens, which nothing differentiates.
  WindowProgram(const BaseModel& model, const TttPlugin* adapters, const std::string& adapter_prefix,
                const WindowShape& shape, std::int64_t rotary_positions, GradientSink sink,
                std::int64_t adapter_documents = 0, int proposals = 0);

  const WindowShape& shape() const { return shape_; }
  // Must be bound before it runs.
  Program& program() { return *program_; }
  const std::vector<std::shared_ptr<const AdapterTensor>>& adapters() const;

  // Whether the adapters' forward pass has kernels that only a plugin knows.
  bool unknown_kernels() const { return taps_ && taps_->unknown_kernels(); }

  // tokens [T]: the windows. positions [N]: the scored ones as indices into tokens, those of document b from
  // b*C on. targets [N]: the token that follows each of them.
  void set_inputs(std::span<const std::int32_t> tokens, std::span<const std::int32_t> positions,
                  std::span<const std::int32_t> targets);
  // Weight of each scored position's loss in the objective, [N].
  void set_weights(std::span<const float> weights);

  // Computes the losses of the scored positions.
  void forward() { program_->run_range(0, split_); }
  // The losses of the last forward(), [N] nats. Waits.
  void download_losses(std::span<float> losses) const;
  // The logarithms of the softmax's denominators there, [N]. Waits.
  void download_normalisers(std::span<float> values) const;
  // proposal[i] for each scored position: the token whose loss forward() gives besides, [N].
  // `number` below `proposals`.
  void set_proposal(int number, std::span<const std::int32_t> tokens);
  // Their losses, as download_losses().
  void download_proposed_losses(int number, std::span<float> losses) const;
  // Gradients of sum(weights * losses), from the activations of the last forward(), and what the sink
  // recorded for them.
  void update() { program_->run_range(split_, program_->graph().calls().size()); }

 private:
  TensorStore& store_;
  WindowShape shape_;
  std::string prefix_;
  std::string proposed(const char* what, int number) const;
  std::unique_ptr<AdapterTaps> taps_;
  std::unique_ptr<Program> program_;
  std::size_t split_ = 0;
};

// The rotary tables that all window programs of a model share; once, after the first program was made.
void upload_window_rope(const BaseModel& model, std::int64_t rotary_positions);

}  // namespace mulligan
