// AttentionObserver: looks at how attention rounds, every metrics.attention_every steps (attention_look.h).
#pragma once

#include <memory>

#include "framework/train/training_observer.h"
#include "lab/attention/attention_look.h"

namespace mulligan::doctor {

class AttentionObserver : public TrainingObserver {
 public:
  bool looks_after(const RunConfig& config, std::int64_t step) const override;
  void after_step(ObservedRun& run) override;

 private:
  std::unique_ptr<AttentionLook> look_;  // of phase_, once it was asked for
  std::size_t phase_ = 0;
};

}  // namespace mulligan::doctor
