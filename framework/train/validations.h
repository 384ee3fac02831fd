// Validations: what a run is scored on, and when on the way.
#pragma once

#include <cstdint>
#include <memory>

#include "framework/config/run_config.h"
#include "framework/eval/evaluate.h"
#include "framework/ranks/host_group.h"
#include "framework/report/run_log.h"

namespace mulligan {

class Validations {
 public:
  // Loads the validation text, where [data] names any. Throws Error.
  void open(const RunConfig& config, RunLog& log);
  ValidationSet* set() { return set_.get(); }  // null: there is none

  // After a step that began at `budget_fraction`: whether one is due ([train] validations, validate_every, validate_at).
  bool due(const TrainConfig& train, double budget_fraction, std::int64_t steps);
  // Scores what the evaluator reads, with a live line. Throws Error.
  EvalResult score(Evaluator& evaluator, HostGroup& group, RunLog& log);

  std::int64_t shares_done() const { return shares_done_; }
  void restore(std::int64_t shares_done) { shares_done_ = shares_done; }

 private:
  std::unique_ptr<ValidationSet> set_;
  std::int64_t shares_done_ = 0;  // of train.validations
};

}  // namespace mulligan
