// Evaluator: the forward pass over packed rows or sliding windows, and the loss of every token. If the model fills in masked tokens
// ([model.masking]), only these have a loss; the others have 0.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/config/eval_config.h"
#include "framework/config/model_config.h"
#include "framework/core/score.h"
#include "framework/data/eval_rows.h"
#include "framework/data/masking.h"
#include "framework/graph/call_access.h"
#include "framework/graph/program.h"
#include "framework/model/packed_inputs.h"
#include "framework/model/parameter_values.h"

namespace mulligan {

// How [model.masking] hides tokens of rows in training and scoring.

// Absent if the model predicts the next token. `bos_id` begins documents.
std::optional<MaskingOptions> masking_options(const ModelConfig& model, int bos_id);

// Describes the hidden tokens; equal words mean losses of the same tokens, hidden alike. Empty if the model predicts the next token.
std::string masking_text(const ModelConfig& model);

class ByteCounter;

struct EvaluatorOptions {
  EvalConfig eval;
  LayerOrderKind layer_order = LayerOrderKind::plain;  // recurrent models are scored looped
  int bos_id = 1;            // begins documents, which attention does not cross; or kNoDocuments
  bool keep_logits = false;  // for a RowListener: memory and a copy of [tokens of a pass, vocabulary] f32
};

// Sums over the scored tokens of one rank's share.
struct EvalSums : ScoreSums {     // in masked rows the hidden tokens
  std::int64_t first_target = 0;  // the scored targets are the stream's positions [first_target, last_target]
  std::int64_t last_target = -1;
  // One for each sequence or window, in order, kept if the share is not all; loss_nats is their sum.
  std::vector<double> parts_nats;
};

// The state of a scoring between two passes.
struct EvalPosition {
  std::size_t row = 0;  // the next row or window of the rank's share
  EvalSums sums;        // of the rows before
};

class Evaluator {
 public:
  // Builds the program. It reads parameters from `store` as `layouts` say. `store` gets the inputs and must outlive this object. Before
  // the first score() the program must be bound (SharedArena).
  Evaluator(TensorStore& store, const ModelConfig& model, const std::vector<ParameterLayout>& layouts,
            const EvaluatorOptions& options);

  // The forward pass with its token losses, as the constructor prepares it.
  static Graph build(const ModelConfig& model, const std::vector<ParameterLayout>& layouts,
                     const EvaluatorOptions& options, const FusedKernels& fused);

  Program& program() { return program_; }
  const EvaluatorOptions& options() const { return options_; }
  const ModelConfig& model() const { return model_; }
  bool masks() const { return masking_.has_value(); }

  // Called for each row or window with the losses of all its positions (also those that are not scored), in nats, and with
  // keep_logits their logits after the softcap, [length, vocabulary].
  using RowListener =
      std::function<void(const EvalSpan&, std::span<const float> losses, std::span<const float> logits)>;

  // Called after each pass with the position that follows it and the number of rows or windows in the share.
  using PassListener = std::function<void(const EvalPosition&, std::size_t)>;

  // Scores one rank's share of the targets tokens[1..]. Token losses use the softcap in the compute dtype and an fp32 cross entropy, and
  // are summed in fp64. Without `bytes` no bytes are counted. BOS as a target costs loss and counts 0 bytes. The scoring begins at
  // `from`, a position of an earlier scoring of the same share, and its sums have the bits of an uninterrupted one. It stops before the
  // pass that begins at or after `until_row`. If a signal asks for an end, it throws between two passes. Masked tokens have no bytes:
  // `bytes` is then null.
  EvalSums score(std::span<const std::uint16_t> tokens, const ByteCounter* bytes, int world_size = 1,
                 int rank = 0, const RowListener& listener = {}, const PassListener& passed = {},
                 const EvalPosition& from = {}, std::size_t until_row = static_cast<std::size_t>(-1));

  // Rows or windows of one pass.
  std::size_t rows_per_pass() const;

 private:
  void hide(const EvalSpan& span);
  void upload_pass(std::span<const std::uint16_t> tokens, std::span<const EvalSpan> pass);

  TensorStore& store_;
  ModelConfig model_;
  EvaluatorOptions options_;
  std::optional<Masking> masking_;
  Program program_;
  PackedInputWriter inputs_;
  // Host sides of the inputs and of the result.
  Batch row_;
  std::vector<std::int32_t> tokens_, targets_, cu_seqlens_;
  std::vector<float> token_loss_, logits_;
};

// An evaluator with the memory of its working space, ready to score. The arguments must outlive it.
struct BoundEvaluator {
  BoundEvaluator(TensorStore& store, const ModelConfig& model, const std::vector<ParameterLayout>& layouts,
                 const EvaluatorOptions& options)
      : evaluator(store, model, layouts, options), arena(store.backend()) {
    arena.bind({&evaluator.program()}, store);
  }

  Evaluator evaluator;
  SharedArena arena;
};

}  // namespace mulligan
