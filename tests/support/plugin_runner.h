// Runs optimiser plugins, loss plugins and single kernels on the test backend (plugins.h) the way training
// does (recorded into a Graph, planned, executed as a Program), with plain vectors going in and coming out.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/graph/graph_recorder.h"
#include "framework/graph/program.h"
#include "framework/plugin/loss.h"
#include "framework/plugin/optimizer.h"
#include "tests/support/plugins.h"

namespace mulligan::plugin_test {

// A test backend with `threads` threads that also knows the kernels of `plugin` (null: only its own).
std::unique_ptr<Backend> make_backend(const PluginHandle& plugin, int threads = 2);

// Whole tensors as floats; f32 and bf16 (rounded to nearest even) are converted.
void upload_floats(TensorStore& store, const std::string& name, const std::vector<float>& values);
std::vector<float> download_floats(const TensorStore& store, const std::string& name);

// A graph made executable with memory of its own.
class Execution {
 public:
  Execution(Backend& backend, Graph graph);
  void run();
  TensorStore& store() { return store_; }

 private:
  TensorStore store_;
  Program program_;
  SharedArena arena_;
};

// One group of parameters under one optimiser.
class OptimizerRunner {
 public:
  struct Parameter {
    std::string name;
    TensorType master;
    std::vector<float> initial = {};  // empty: zeros
    double lr_multiplier = 1.0;
    double weight_decay_multiplier = 1.0;
  };
  // `toml`: the plugin's keys, for example "momentum = 0.9". On `backend`, or, without one, the test backend.
  OptimizerRunner(const std::string& plugin, const std::string& toml,
                  const std::vector<Parameter>& parameters, int threads = 2,
                  std::unique_ptr<Backend> backend = nullptr);

  // The next update, number 1 being the first, with these gradients (by parameter name) and scheduled rate.
  void step(const std::map<std::string, std::vector<float>>& gradients, double lr,
            double momentum_factor = 1.0, double weight_decay_factor = 1.0);
  // As after `steps` updates that left this in state `name`.
  void resume(const std::string& name, const std::vector<float>& values, std::int64_t steps);
  // The evaluation weights after the last step, of an optimiser that has them.
  std::vector<float> evaluation(const std::string& parameter) const;
  std::vector<float> master(const std::string& parameter) const;
  // The plugin's state `name`, for example "w.exp_avg".
  std::vector<float> state(const std::string& name) const;
  DType state_dtype(const std::string& name) const;
  // What the plugin supplies for update number `step`.
  std::vector<float> scalars(std::int64_t step, double lr) const;

 private:
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Execution> execution_;
  std::int64_t step_ = 0;
};

struct LossResult {
  std::vector<float> token_loss, saved, gradient;  // `saved`: the first of the forward's saved values
};
// Forward and backward of a loss plugin on logits [rows, columns] of `dtype`. With `in_place` the gradient
// takes the memory of the logits.
LossResult run_loss(const std::string& plugin, DType dtype, double softcap, std::int64_t columns,
                    const std::vector<float>& logits, const std::vector<std::int32_t>& targets,
                    const std::vector<float>& upstream, bool in_place = false);

}  // namespace mulligan::plugin_test
