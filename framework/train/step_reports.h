// StepReports: the lines of the log and the records of metrics.jsonl about training, one every train.log_every steps.
#pragma once

#include <cstdint>

#include "framework/checkpoint/manifest.h"
#include "framework/report/metrics_file.h"
#include "framework/train/phase_follower.h"
#include "framework/train/run_outputs.h"
#include "framework/train/training_clock.h"

namespace mulligan {

class StepReports {
 public:
  StepReports(std::int64_t log_every, RunOutputs& outputs) : log_every_(log_every), outputs_(outputs) {}

  bool due(std::int64_t steps) const { return steps == 1 || steps % log_every_ == 0; }
  // Whether there are steps that no line was about.
  bool pending(std::int64_t steps) const { return last_.steps < steps; }
  // A record of the window from the last report to now, without anything else.
  StepRecord window(const Trained& now) const;
  // The record is complete but for tokens and times: writes it and its line. Precondition: pending.
  void write(StepRecord record, TrainingClock& clock, double lr_factor);

  void save_to(CheckpointProgress& progress) const;
  // `step_tokens` are those of each step since the last report.
  void restore(const CheckpointManifest& manifest, std::int64_t step_tokens);

 private:
  std::int64_t log_every_;
  RunOutputs& outputs_;
  Trained last_;             // at the last report
  double last_seconds_ = 0;  // training clock then
};

}  // namespace mulligan
