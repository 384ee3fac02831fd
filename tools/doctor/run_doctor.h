// RunDoctor: the doctor's checks of a training run, before its first step and of what it found (doctor.level).
#pragma once

#include "framework/train/training_observer.h"
#include "tools/doctor/start_checks.h"

namespace mulligan::doctor {

class RunDoctor : public TrainingObserver {
 public:
  // With `force` a run starts although a check failed, and its result records it.
  explicit RunDoctor(bool force) : force_(force) {}

  // Throws run_error naming the first check that failed.
  void before_first_step(ObservedRun& run) override;
  void at_end(ObservedRun& run) override;
  void add_to_result(nlohmann::ordered_json& result) const override;
  void last_words(RunLog& log) const override;

 private:
  bool force_;
  StartRecord record_;  // of the first rank
};

}  // namespace mulligan::doctor
