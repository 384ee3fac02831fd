// Losses without test-time training: the reference of the collapse detector and of the gains.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/eval/evaluator.h"
#include "framework/ttt/base_model.h"

namespace mulligan {

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
