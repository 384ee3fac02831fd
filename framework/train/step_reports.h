// StepReports: the lines of the log and the records of metrics.jsonl about training, one every train.log_every steps.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "framework/checkpoint/loss_account.h"
#include "framework/checkpoint/manifest.h"
#include "framework/report/metrics_file.h"
#include "framework/step/engine.h"
#include "framework/train/phase_follower.h"
#include "framework/train/run_outputs.h"
#include "framework/train/training_clock.h"

namespace mulligan {

// A step, counted from 1, whose loss or gradient norm is not finite.
struct UnsoundStep {
  std::int64_t number;
  double loss_nats, gradient_norm;
};

// The training losses of a run, booked step by step in the order in which the device has made them.
class LossBooks {
 public:
  // Single losses are kept for means over the last steps, `log_every` at least.
  explicit LossBooks(std::int64_t log_every);

  // A step was given to the device: how many losses it has, and whether it updates.
  void made(std::int64_t targets, bool updated) { uncollected_.push_back({targets, updated}); }
  std::int64_t collected() const { return collected_; }  // steps whose losses are booked
  bool any_counted() const { return account_.run().steps_counted > 0; }
  // Books what the device has read of the steps from collected() on, all in `phase`. Stops at a step that is not
  // sound, which stays uncollected: saving this state stops in the same way.
  std::optional<UnsoundStep> collect(const std::vector<StepMetrics>& read, const std::string& phase);

  const LossAccount& account() const { return account_; }
  double first_nats() const { return first_nats_; }  // of the first step counted; 0 before it
  double last_nats() const { return last_nats_; }    // of the last one
  // Of the steps that this process made, in order.
  const std::vector<double>& step_nats() const { return step_nats_; }

  // The report's share of losses: `record` has its window.
  void add_to(StepRecord& record, bool hf_compat) const;

  void save_to(CheckpointManifest& manifest) const;
  void restore(const CheckpointManifest& manifest);

 private:
  struct StepMade {
    std::int64_t targets;
    bool updated;
  };
  LossAccount account_;
  std::deque<StepMade> uncollected_;  // each step from collected_ on
  std::int64_t collected_ = 0;
  double first_nats_ = 0, last_nats_ = 0;
  double gradient_norm_ = 0;  // of the last step collected
  std::vector<double> step_nats_;
};

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
