// Measures how a model's attention rounds (docs/numerics/attention_bias.md). It runs forward and backward of a short row on a
// run's backend, and compares each call of attention with its exact result.
#pragma once

#include <memory>

#include "framework/plugin/plugin_host.h"
#include "framework/report/attention_record.h"
#include "framework/run/run_plugins.h"
#include "framework/train/training_observer.h"
#include "tools/doctor/probe.h"

namespace mulligan::doctor {

class AttentionLook {
 public:
  static constexpr std::int64_t most_tokens = 256, most_rows = 512;  // of the row; of a call

  // Uses plugins of its own, so that a run's memory stays as planned: the backend of `phase` of the configuration, in its
  // compute dtype. `loaded` has its plugins resolved and must outlive this object. Throws Error.
  AttentionLook(const LoadedConfig& loaded, PluginHost& host, const std::string& section, const Phase& phase);

  // With these weights, on the first tokens of a row of training data.
  AttentionRecord look(const Weights& weights, const Batch& row, std::int64_t step);

 private:
  const RunConfig& config_;
  RunPlugins plugins_;
  std::int64_t tokens_;
  MicroStepProbe probe_;
};

// AttentionObserver: measures the rounding of attention every metrics.attention_every steps (attention_look.h).
class AttentionObserver : public TrainingObserver {
 public:
  bool looks_after(const RunConfig& config, std::int64_t step) const override;
  void after_step(const ObservedRun& run) override;

 private:
  std::unique_ptr<AttentionLook> look_;  // of phase_, once it was asked for
  std::size_t phase_ = 0;
};

}  // namespace mulligan::doctor
