// PlainScorer: losses without adapters.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

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

// Losses of the evaluation, in rows of its own length, which test-time training is reported next to.
class PlainScorer {
 public:
  // Takes the memory of its working space until it goes. The arguments must outlive this object.
  PlainScorer(const BaseModel& model, const RunConfig& config, int bos_id);

  // Of every target of a rank's share by stream position, from rows of the evaluation's length, written to
  // `losses` (of the stream's length), beginning at row `from`. `passed` is called after each pass, as
  // Evaluator::score does.
  void score(std::span<const std::uint16_t> tokens, std::vector<float>& losses, std::size_t from,
             const Evaluator::PassListener& passed, int world_size = 1, int rank = 0);
  Program& program() { return evaluator_.program(); }

 private:
  Evaluator evaluator_;
  SharedArena arena_;
};

}  // namespace mulligan
