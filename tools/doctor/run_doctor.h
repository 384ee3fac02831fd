// RunDoctor: the doctor's checks of a training run, before its first step and of what it found (doctor.level).
#pragma once

#include <vector>

#include "framework/train/training_observer.h"
#include "tools/doctor/corpus_checks.h"
#include "tools/doctor/finding.h"
#include "tools/doctor/movement.h"

namespace mulligan::doctor {

class RunDoctor : public TrainingObserver {
 public:
  // With `force` a run starts although a check failed, and its result records it.
  explicit RunDoctor(bool force) : force_(force) {}

  // The checks with a star in docs/doctor.md, and with level "all" those of examine(). Writes each finding that did not pass
  // to the log. State, data position and weights are afterwards as they were. Throws run_error naming the first check that
  // failed, unless `force`.
  void before_first_step(const ObservedRun& run) override;
  // D26 to D28, D36 and D38 to D40: said and recorded, never fatal.
  void at_end(const ObservedRun& run) override;
  void add_to_result(nlohmann::ordered_json& result) const override;
  // What failed.
  void last_words(RunLog& log) const override;

 private:
  void examine_start(const ObservedRun& run);

  bool force_;
  // Of the first rank.
  DoctorLevel level_ = DoctorLevel::off;
  bool forced_ = false;  // a check had failed, and the run was told to go on
  double seconds_ = 0;   // that the checks before the first step took
  SeenData data_;        // whose findings are among findings_
  Samples start_;        // of the weights that the first step found
  std::vector<Finding> findings_;
};

}  // namespace mulligan::doctor
