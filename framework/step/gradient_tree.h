// GradientTree: the gradients of a step summed as over the leaves of one binary tree (run.determinism =
// "world"): over the step's micro-batches, whichever rank computed them, so that the sum's bits do not depend on the
// number of ranks. fp32, and powers of two.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/graph/program.h"
#include "framework/ranks/communicator.h"
#include "framework/run/parameter_plan.h"

namespace mulligan {

// Gradients and a loss sum that are kept aside until they are added to those of a later micro-step.
class GradientLevel {
 public:
  // Declares its tensors in `store`, which has the gradients; `level` tells it from others. `parameters` and `store`
  // must outlive it.
  GradientLevel(const std::vector<PlannedParameter>& parameters, TensorStore& store, std::size_t level);

  Program& program() const { return *program_; }
  // Copies gradients and loss sum here.
  void keep();
  // Adds what was kept to gradients and loss sum, in f32 and f64.
  void add() { program_->run(); }

 private:
  const std::vector<PlannedParameter>& parameters_;
  TensorStore& store_;
  std::size_t level_;
  std::unique_ptr<Program> program_;
};

class GradientTree {
 public:
  // Declares its tensors in `store`, which has the gradients, and makes its programs. `parameters` and
  // `store` must outlive it. Throws config_error where these settings and ranks make no tree.
  GradientTree(const RunConfig& config, const std::vector<PlannedParameter>& parameters, TensorStore& store,
               int world_size);

  std::vector<Program*> programs() const;
  void prepare(Communicator& communicator);

  // Throws config_error where it has no place for this many micro-batches of one rank.
  void require_leaves(std::int64_t count) const;
  // Adds what micro-step number `micro` of this rank's `count` left in gradients and loss sum; after the last
  // one they are this rank's sum. Each micro-step begins with zeros.
  void add_leaf(std::int64_t micro, std::int64_t count);
  // From this rank's sums to those of all ranks.
  void reduce();

 private:
  void declare_levels(std::int64_t leaves);
  void declare_pieces();

  const std::vector<PlannedParameter>& parameters_;
  TensorStore& store_;
  int world_size_;
  std::vector<GradientLevel> levels_;  // of this rank's tree
  std::unique_ptr<Program> add_pieces_;
  std::unique_ptr<TransferBatch> deal_, share_;
};

}  // namespace mulligan
