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

// Checks of the rows that a run learns from: D19 and D31.

// D19: the target of each position is the token that follows it, as far as the row holds both, and the
// targets are not the inputs. `repeat_share`: how often a token of the corpus equals the one before it.
Finding check_targets(const std::vector<Batch>& rows, double repeat_share);
// The same of rows whose tokens are hidden: as many as [model.masking] says, and hidden.
Finding check_masked_targets(const std::vector<Batch>& rows, const MaskingOptions& masking);

// D31: after the last row of the data comes the first again: the loader makes up none. `planned_spans`:
// rows that the run will read; 0 where a time budget ends it.
Finding check_end_of_data(const LoaderOptions& options, std::int64_t planned_spans);

// Checks that train: D30, D32, D34 and D35.

// A few steps of a run's own training on short rows, next to the run: nothing of them lasts.

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
  std::string digest() { return state_digest_of(engine_.store()); }
  TrainingEngine& engine() { return engine_; }
  Backend& backend() { return *plugins_.backend; }

 private:
  std::string state_digest_of(TensorStore& store) const;

  const RunConfig& config_;
  LossScaler loss_scaler_;
  RunPlugins plugins_;
  std::vector<PlannedParameter> parameters_;
  OptimizerGroups groups_;
  std::unique_ptr<Communicator> communicator_;
  TrainingEngine engine_;
  SharedArena arena_;
};

// D32: a hundred steps on one row bring its loss below a tenth, and not below 0.
Finding judge_overfit(double first_nats, double last_nats, int steps);

// D34: two runs of three steps are the same to the bit, where the backend promises that. D30: the state
// of training is the same after a checkpoint was written and read, and on another instance of the
// backend. D35: so is the loss, and a checkpoint with a changed byte is refused. `row`: 16 tokens or more.
std::vector<Finding> check_training(const LoadedConfig& loaded, PluginHost& host, const Batch& row);

}  // namespace mulligan::doctor
