// BatchProgram: the one forward pass over several sequences of equal length at once, and the logits of some of their rows. The
// size of the batch changes logits only where head and matmuls process the whole batch.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/config/model_config.h"
#include "framework/graph/program.h"
#include "framework/model/packed_inputs.h"
#include "framework/model/parameter_values.h"

namespace mulligan {

struct BatchShape {
  std::int64_t sequences = 1;
  std::int64_t length = 0;  // tokens of a sequence, and rotary positions of it
  enum class Wanted {
    last_sequence,  // logits of every token of the last sequence; the head multiplies all of the batch
    one_each,       // logits of one token of each sequence, the head's only rows, as in generation
  };
  Wanted wanted = Wanted::last_sequence;

  std::int64_t rows() const { return wanted == Wanted::one_each ? sequences : length; }
};

class BatchProgram {
 public:
  // Parameters are read from `store` as `layouts` say; its inputs get names that follow from the shape. All references must
  // outlive this object. The program must be bound before a run.
  BatchProgram(TensorStore& store, const ModelConfig& model, const std::vector<ParameterLayout>& layouts,
               LayerOrderKind order, const BatchShape& shape);

  Program& program() { return *program_; }

  // `texts`: as many as the shape has sequences, of at most its length, not empty. Returns the logits after the softcap,
  // [rows of the shape, vocabulary] f32; for one_each those after the last token of each text. Valid until the next run of any
  // program of this vocabulary's store.
  std::span<const float> logits(std::span<const std::span<const std::int32_t>> texts);

 private:
  TensorStore& store_;
  BatchShape shape_;
  std::string prefix_;
  std::unique_ptr<Program> program_;
  PackedInputWriter inputs_;
  std::vector<std::int32_t> tokens_, boundaries_, last_;
  std::vector<float> logits_;
};

}  // namespace mulligan
