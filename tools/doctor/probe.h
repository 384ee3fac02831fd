// The model of a run on a short row, each value with memory of its own: what the checks of the model look at.
//
// The graphs are those of a run: Evaluator::build and build_micro_step.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "framework/check/poisoned_run.h"
#include "framework/config/run_config.h"
#include "framework/data/masking.h"
#include "framework/data/segments.h"
#include "framework/graph/tensor_store.h"
#include "framework/plugin/loss.h"
#include "framework/run/loaded_model.h"
#include "framework/run/parameter_plan.h"

namespace mulligan::doctor {

// f32 values of parameters by name, in the parameters' own shapes.
using Weights = std::map<std::string, std::vector<float>>;

// As a run begins.
Weights initial_weights(const ModelConfig& model, std::uint64_t seed);
// Repeatable weights without a zero. Many parameters begin at zero and would hide a fault in what they multiply.
Weights vivid_weights(const ModelConfig& model);
// The f32 masters that a store holds, whatever dtype they are kept in.
Weights weights_of(const TensorStore& store, const std::vector<PlannedParameter>& parameters);

// The same of weights that `load` reads into a model of `config`.
Weights weights_from(Backend& backend, const RunConfig& config, const WeightLoader& load);

// A row cut to `tokens` tokens of a longer one. With `masking` its tokens are hidden: where the cut has few hidden
// tokens, the usual share is hidden anew, since the mean loss of a handful of tokens is noise.
Batch cut_row(const Batch& row, std::int64_t tokens, const std::optional<MaskingOptions>& masking = {});
// A row of repeatable ids below `vocabulary` in segments of these lengths; the targets are the following ids.
Batch drawn_row(const std::vector<std::int64_t>& segments, std::int64_t vocabulary, std::uint64_t seed);

// A graph of a row and of the weights of a model. set() replaces either; the number of tokens stays the same.
class RowProbe {
 public:
  void set(const Weights& weights);
  virtual void set(const Batch& row);
  void run(std::uint8_t poison = poison_zero) { run_.run(poison); }
  PoisonedRun& memory() { return run_; }

 protected:
  // `prefix` of the row's tensors. Takes memory on `backend` for the whole model and the row. Throws Error.
  RowProbe(Backend& backend, Graph graph, std::string prefix, std::vector<ParameterLayout> layouts);
  // The first row, with the tables of positions.
  void begin(const ModelConfig& model, const Weights& weights, const Batch& row);

  std::string prefix_;
  std::vector<ParameterLayout> layouts_;
  std::int64_t targets_ = 0;  // of the row
  PoisonedRun run_;
};

// The forward pass with its token losses, as an evaluation makes it.
class EvaluationProbe : public RowProbe {
 public:
  EvaluationProbe(Backend& backend, const RunConfig& config, ComputeTypes compute, const Weights& weights,
                  const Batch& row);

  std::vector<float> token_losses() const;
  double mean_loss() const;  // of the row's targets
  // [T, V] as the loss reads them, after the softcap.
  std::vector<double> logits() const;
};

// Forward, loss and backward of one micro-batch, as training makes it.
class MicroStepProbe : public RowProbe {
 public:
  // `backend` knows the loss's kernels.
  MicroStepProbe(Backend& backend, const Loss& loss, const RunConfig& config, ComputeTypes compute,
                 const Weights& weights, const Batch& row);

  using RowProbe::set;
  void set(const Batch& row) override;
  double mean_loss() const;
  // Of the mean loss.
  std::vector<float> gradient(const std::string& parameter) const;
};

}  // namespace mulligan::doctor
