// TrainingPrograms: everything that a training run has on its device - the engine, the evaluation of its
// validation tokens, and the memory that their programs share.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "framework/eval/evaluator.h"
#include "framework/run/device_memory.h"
#include "framework/step/engine.h"

namespace mulligan {

class TrainingPrograms {
 public:
  // Prepares every program; bind() takes the memory. `section` is the backend's (StepPlan).
  // `validation_bos_id` is the BOS token of the validation tokens; absent: nothing is evaluated. All
  // references must outlive this object. Throws Error.
  TrainingPrograms(const RunConfig& config, const std::string& section, const RunPlugins& plugins,
                   const std::vector<PlannedParameter>& parameters, OptimizerGroups& groups,
                   Communicator& communicator, std::optional<int> validation_bos_id);

  TrainingEngine& engine() { return engine_; }
  // Null where nothing is evaluated.
  Evaluator* evaluator() { return evaluator_.get(); }
  // Brings what the evaluator reads up to date: compute copies, averages or evaluation weights. By all
  // ranks alike.
  void refresh_scored_weights();

  std::vector<Program*> programs();
  DeviceMemory memory() { return memory_of(engine_.store(), programs()); }
  void bind() { arena_.bind(programs(), engine_.store()); }

 private:
  TrainingEngine engine_;
  std::unique_ptr<Evaluator> evaluator_;
  std::unique_ptr<Program> scored_copies_;  // of averages or evaluation weights; null: none
  SharedArena arena_;
};

}  // namespace mulligan
