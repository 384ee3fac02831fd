// Checks of what a run learns from, and checks that train.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/data/loader.h"
#include "framework/data/segments.h"
#include "framework/plugin/plugin_host.h"
#include "framework/step/engine.h"
#include "framework/step/loss_scaler.h"
#include "tools/doctor/finding.h"

namespace mulligan::doctor {

// D19. `repeat_share`: how often a token of the corpus equals the one before it.
Finding check_targets(const std::vector<Batch>& rows, double repeat_share);
// D19 of rows whose tokens are hidden.
Finding check_masked_targets(const std::vector<Batch>& rows, const MaskingOptions& masking);

// D31. `planned_spans`: rows that the run will read; 0 where a time budget ends it.
Finding check_end_of_data(const LoaderOptions& options, std::int64_t planned_spans);

// A few steps of a run's own training on short rows. Nothing of them lasts.

// The configuration with steps of one row of `tokens` tokens, all in its last phase, on [backend].
RunConfig shortened(RunConfig config, std::int64_t tokens);

class Rehearsal {
 public:
  // Plugins of `loaded`, tensors and programs of its own, with the initial weights of the run's seed.
  // `config` is shortened() from that of `loaded`; both must outlive this object. Throws Error.
  Rehearsal(const LoadedConfig& loaded, const RunConfig& config, PluginHost& host);

  // Step `number`, from 1, on this row, with the rates at a third of the run. Returns the row's loss
  // before it, in nats.
  double step(std::int64_t number, const Batch& row);
  double loss(const Batch& row) { return engine_.probe_loss(row); }
  std::vector<std::string> state() const { return engine_.state_tensors(); }
  std::string digest();  // of the state of training
  TrainingEngine& engine() { return engine_; }
  Backend& backend() { return *plugins_.backend; }

 private:
  const RunConfig& config_;
  LossScaler loss_scaler_;
  RunPlugins plugins_;
  std::vector<PlannedParameter> parameters_;
  OptimizerGroups groups_;
  std::unique_ptr<Communicator> communicator_;
  TrainingEngine engine_;
  SharedArena arena_;
};

// D32
Finding judge_overfit(double first_nats, double last_nats, int steps);

// D30, D32, D34 and D35. `row`: 16 tokens or more.
std::vector<Finding> check_training(const LoadedConfig& loaded, PluginHost& host, const Batch& row);

}  // namespace mulligan::doctor
