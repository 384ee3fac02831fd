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

  // Of every target by stream position, from rows of the evaluation's length; `seconds` that it took.
  std::vector<float> losses(std::span<const std::uint16_t> tokens, double& seconds);
  Program& program() { return evaluator_.program(); }

 private:
  Evaluator evaluator_;
  SharedArena arena_;
};

}  // namespace mulligan
