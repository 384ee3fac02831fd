// Trainer: one training run from a resolved configuration to its result.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/eval/evaluator.h"
#include "framework/report/metrics_file.h"
#include "framework/report/run_log.h"
#include "framework/train/engine.h"
#include "framework/train/ledger.h"
#include "framework/train/run.h"
#include "framework/train/run_files.h"

namespace mulligan {

class Trainer {
 public:
  // Opens the run directory, the data and the plugins, and makes every program. `loaded` has its plugins
  // resolved and must outlive this object. Throws Error.
  Trainer(const LoadedConfig& loaded, PluginHost& host, Communicator& communicator,
          const TrainOptions& options);

  RunResult run();

 private:
  void open_data();
  void compile();
  void warm_up();
  void train_until_budget_is_spent();
  void validate();
  void save();
  RunResult finish();

  mlg_progress progress(double budget_fraction) const;
  void follow_schedules(double budget_fraction);
  void choose_layer_order(double budget_fraction);
  bool report_due() const;
  void report_steps(double budget_fraction);
  void check_initial_loss(double loss_nats);
  void show_progress();

  const LoadedConfig& loaded_;
  const RunConfig& config_;
  PluginHost& host_;
  Communicator& communicator_;

  Ledger ledger_;
  Budget budget_;
  RunFiles files_;
  RunLog log_;
  MetricsFile metrics_;

  RunPlugins plugins_;
  std::vector<PlannedParameter> parameters_;
  OptimizerGroups groups_;
  std::unique_ptr<TrainingEngine> engine_;
  std::unique_ptr<Program> average_refresh_;
  std::unique_ptr<Evaluator> evaluator_;
  SharedArena arena_;
  std::unique_ptr<Prefetcher> rows_;
  std::unique_ptr<ValidationSet> validation_;

  std::int64_t step_ = 0;      // updates done
  std::int64_t reported_ = 0;  // of which reported
  double reported_at_ = 0;     // training clock at the last report, seconds
  double shown_at_ = 0;        // the same for the live line
  bool looping_ = false;
  std::vector<std::int64_t> cycles_;  // of the groups' schedules
  RunResult result_;
};

}  // namespace mulligan
