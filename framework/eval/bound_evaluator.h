#pragma once

#include "framework/eval/evaluator.h"

namespace mulligan {

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
