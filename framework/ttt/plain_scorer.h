// What test-time training loads and scores before anything is adapted.
#pragma once

#include "framework/config/run_config.h"
#include "framework/eval/evaluator.h"
#include "framework/graph/program.h"
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
struct PlainScorer {
  PlainScorer(const BaseModel& model, const RunConfig& config, int bos_id)
      : evaluator(model.store, model.config, model.layouts, options(model, config, bos_id)),
        arena(model.store.backend()) {
    arena.bind({&evaluator.program()}, model.store);
  }
  static EvaluatorOptions options(const BaseModel& model, const RunConfig& config, int bos_id) {
    EvaluatorOptions options{config.eval, model.compute, model.layer_order, bos_id};
    options.eval.mode = EvalMode::rows;
    options.eval.drop_remainder = false;
    return options;
  }

  Evaluator evaluator;
  SharedArena arena;
};

}  // namespace mulligan
