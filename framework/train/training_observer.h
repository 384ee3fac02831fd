// TrainingObserver: what watches a training run and takes no part in it. The trainer knows no observer by its name:
// the command that starts a run brings them (TrainOptions::observers).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "framework/checkpoint/loss_account.h"
#include "framework/config/run_config.h"
#include "framework/data/prefetcher.h"
#include "framework/eval/evaluate.h"
#include "framework/plugin/plugin_host.h"
#include "framework/report/metrics_file.h"
#include "framework/report/run_log.h"
#include "framework/run/ledger.h"
#include "framework/run/run_ranks.h"
#include "framework/run/training_data.h"
#include "framework/step/phase_devices.h"

namespace mulligan {

// A run as its observers see it between two steps. What an observer changes it puts back: the position of the rows,
// the ledger's phase. The seconds that it takes it books itself (ledger.enter).
struct ObservedRun {
  const LoadedConfig& loaded;
  PluginHost& host;
  RunRanks& ranks;
  const std::vector<PlannedParameter>& parameters;
  PhaseDevices& phases;
  Prefetcher& rows;
  ValidationSet* validation;  // null: the run has none
  const TrainingData& data;
  const LossAccount& losses;
  MetricsFile* metrics;  // null on ranks but the first, and until the run directory is begun
  Ledger& ledger;
  RunLog& log;
  bool resumed = false;               // from a checkpoint
  std::int64_t first_step = 0;        // of this process
  std::int64_t step = 0;              // updates done
  std::int64_t tokens = 0;            // trained on, over all ranks
  double training_seconds = 0;        // on the training clock
  double tokens_per_second = 0;       // over all of training; 0 until its end
  const EvalResult* score = nullptr;  // of the validation text at the end; null until then or without one
};

// Every rank calls all of these at the same places in the same order, so an observer may use collectives.
class TrainingObserver {
 public:
  virtual ~TrainingObserver() = default;
  // Programs, data and weights are there, nothing is written yet. Throws Error to refuse the run.
  virtual void before_first_step(const ObservedRun&) {}
  // The training clock begins to run, and stops: around validations, checkpoints at the end and looks.
  virtual void clock_starts(const ObservedRun&) {}
  virtual void clock_stops() {}
  // Whether after_step() is wanted after this update (from 1). For it the device ends all steps and the clock stops.
  virtual bool looks_after(const RunConfig&, std::int64_t) const { return false; }
  virtual void after_step(const ObservedRun&) {}
  virtual void before_report() {}
  // Training and the last score are done, result.json is not written yet.
  virtual void at_end(const ObservedRun&) {}
  // The first rank: members of result.json; lines below the final table.
  virtual void add_to_result(nlohmann::ordered_json&) const {}
  virtual void last_words(RunLog&) const {}
};

// Makes an observer for one run.
using MakeObserver = std::function<std::unique_ptr<TrainingObserver>()>;

}  // namespace mulligan
