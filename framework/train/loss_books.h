// LossBooks records the training losses of a run, step by step, in the order in which the device computes them.
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

namespace mulligan {

// A step, counted from 1, whose loss or gradient norm is not finite.
struct UnsoundStep {
  std::int64_t number;
  double loss_nats, gradient_norm;
};

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

}  // namespace mulligan
