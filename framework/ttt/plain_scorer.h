// What test-time training loads and scores before anything is adapted.
#pragma once

#include "framework/config/run_config.h"
#include "framework/eval/bound_evaluator.h"
#include "framework/run/loaded_model.h"
#include "framework/ttt/window_program.h"

namespace mulligan {

// Of what test-time training loads.
inline LoadedModel::Masters base_masters(const TttSection& ttt) {
  if (ttt.config.base_keeps_dtypes) return LoadedModel::Masters::as_trained;
  return ttt.base ? LoadedModel::Masters::fp32 : LoadedModel::Masters::scored;
}

// A view: `model` and `config` must outlive it.
inline BaseModel base_model(LoadedModel& model, const RunConfig& config) {
  return {model.store(), config.model, model.layouts(), model.compute(), scored_order(config.model)};
}

// The evaluation in rows of its own length, which test-time training is reported next to. Takes the memory of its
// working space until it goes. The arguments must outlive it.
struct PlainScorer : BoundEvaluator {
  PlainScorer(const BaseModel& model, const RunConfig& config, int bos_id)
      : BoundEvaluator(model.store, model.config, model.layouts, options(model, config, bos_id)) {}
  static EvaluatorOptions options(const BaseModel& model, const RunConfig& config, int bos_id) {
    EvaluatorOptions options{config.eval, model.compute, model.layer_order, bos_id};
    options.eval.mode = EvalMode::rows;
    options.eval.drop_remainder = false;
    return options;
  }
};

}  // namespace mulligan
