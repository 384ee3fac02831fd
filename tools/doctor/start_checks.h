// The checks that a run makes of itself before its first step, and of what it found at its end.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/data/prefetcher.h"
#include "framework/eval/evaluate.h"
#include "framework/run/training_data.h"
#include "framework/step/phase_devices.h"
#include "tools/doctor/finding.h"
#include "tools/doctor/movement.h"
#include "tools/doctor/outcome_checks.h"

namespace mulligan::doctor {

// What a run has before its first step.
struct RunSubject {
  const LoadedConfig& loaded;
  PluginHost& host;
  const std::vector<PlannedParameter>& parameters;
  TrainingDevice& device;     // of the present phase, with its weights
  Prefetcher& rows;           // left where it stood
  ValidationSet* validation;  // may be null
  const TrainingData& data;
  bool fresh = true;  // no step has been made
};

// What is kept of it in result.json.
struct StartRecord {
  DoctorLevel level = DoctorLevel::off;
  bool forced = false;               // a check had failed, and the run was told to go on
  double floor_nats = 0;             // of a validation loss (loss_floor)
  double seconds = 0;                // that the checks before the first step took
  double unigram_nats = 0;           // entropy of the data's ids
  std::vector<double> token_shares;  // of the training data
  Samples start;                     // of the weights that the first step found
  std::vector<Finding> findings;
};
nlohmann::ordered_json record_json(const StartRecord& record);

using Say = std::function<void(const std::string&)>;

// The checks with a star in docs/doctor.md, and with level "all" those of examine(). Says each finding that did not pass.
// State, data position and weights are afterwards as they were. Throws run_error naming the first check that failed,
// unless `force`.
StartRecord examine_start(const RunSubject& subject, bool force, const Say& say);

// D26 to D28, D36 and D38 to D40: said and recorded, never fatal.
struct RunEnd {
  std::optional<Outcome> validated;  // without its floor
  const LossAccount* account = nullptr;
  std::int64_t steps = 0;
  Throughput throughput;
  std::optional<Movement> movement;  // of the steps since examine_start
  std::optional<Samples> averages;   // where the run has any that are scored
  double ema_decay = 0;
};
void examine_end(StartRecord& record, const RunEnd& end, const Say& say);

// Whether the check was made and found nothing.
bool passed(const StartRecord& record, std::string_view id);

// Repeats what failed, as the last lines of a run.
void say_failures(const StartRecord& record, const Say& say);

}  // namespace mulligan::doctor
