// GradientLevel: gradients and a loss sum that are kept aside until they are added to those of a later micro-step.
#pragma once

#include <memory>
#include <vector>

#include "framework/graph/program.h"
#include "framework/run/parameter_plan.h"

namespace mulligan {

class GradientLevel {
 public:
  // Declares its tensors in `store`, which has the gradients; `level` tells it from others. `parameters` and `store`
  // must outlive it.
  GradientLevel(Backend& backend, const std::vector<PlannedParameter>& parameters, TensorStore& store,
                std::size_t level);

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

}  // namespace mulligan
