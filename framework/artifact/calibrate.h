// Second moments of the linear layers' inputs, collected in the one forward pass through taps.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "framework/artifact/artifact_model.h"
#include "framework/graph/program.h"
#include "framework/model/packed_inputs.h"
#include "framework/model/parameter_values.h"

namespace mulligan {

// Rows are plain causal: attention reaches from a row's start,
// across documents (docs/record_run.md#calibration-rows).
struct CalibrationShape {
  std::int64_t batch_rows = 1;  // rows of one batch
  std::int64_t row_tokens = 0;  // tokens of one row
  // A batch is cut into forward passes of whole rows and at most so many tokens.
  std::int64_t pass_tokens = 32768;
};

// Of X, what the linear layers of a tap point read. X is in the compute dtype.
struct InputMoments {
  // [columns, columns] f32: X^T X, summed over the batches and over repeated executions of a looped layer, and
  // divided by the number of batches alone.
  std::vector<float> hessian;
  // [columns]: root mean square of each column over all rows of all batches and executions; the square root of
  // the diagonal over rows in place of batches.
  std::vector<float> rms;
};

// The moments of every tap point, summed in f32 on the backend. Recurrent models run looped.
class Calibrator {
 public:
  // Builds the program; parameters are read from `store` as `layouts` say. `store` gets the inputs and the
  // moments and must outlive this object.
  Calibrator(TensorStore& store, const ModelConfig& model, const std::vector<ParameterLayout>& layouts,
             const CalibrationShape& shape);

  Program& program() { return program_; }

  // Rows of one run of the program.
  std::int64_t rows_per_pass() const;
  // Runs the program once on tokens 0 and forgets what that collected: what a device makes for the first run
  // is made then. Waits for the device.
  void rehearse();
  // One batch: batch_rows * row_tokens tokens, row after row.
  void add(std::span<const std::int32_t> tokens);

  // Waits for the backend. Throws std::logic_error before the first batch.
  InputMoments moments(const TapPoint& point) const;

 private:
  // Frees nothing, but starts anew with zero moments.
  void reset();
  Graph build(const ModelConfig& model, const std::vector<ParameterLayout>& layouts);

  TensorStore& store_;
  CalibrationShape shape_;
  std::map<TapPoint, std::int64_t> executions_;  // of each point in one forward pass
  Program program_;
  SharedArena arena_;
  PackedInputWriter inputs_;
  std::vector<std::int32_t> boundaries_;
  std::int64_t batches_ = 0;
};

}  // namespace mulligan
