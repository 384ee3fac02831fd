// CheckpointManifest: the contents of a checkpoint besides tensors, as manifest.json.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/checkpoint/loss_account.h"
#include "framework/data/data_identity.h"
#include "framework/data/loader.h"

namespace mulligan {

// Version of the folder's layout and of the manifest's keys. Another one is refused.
inline constexpr std::int64_t checkpoint_format_version = 2;

struct CheckpointFile {
  std::string name;  // within the checkpoint's folder
  std::uint64_t bytes = 0;
  std::string sha256;
  bool operator==(const CheckpointFile&) const = default;
};

// A plugin that took part. Only the same state version understands its state in the tensors.
struct CheckpointPlugin {
  std::string section;  // of the configuration: "loss", "optimizer.matrices"
  std::string kind;
  std::string name;
  std::int64_t state_version = 0;
  std::string sha256;  // of the library
  bool operator==(const CheckpointPlugin&) const = default;
};

// The position of the data stream.
struct CheckpointData {
  LoaderPosition position;
  std::int64_t row_tokens = 0;  // a span is this many tokens and one more
  bool operator==(const CheckpointData&) const = default;
};

// Where a run stood when its present phase began.
struct PhaseStart {
  std::int64_t step = 0;  // updates done
  double budget_fraction = 0;
  double elapsed_seconds = 0;  // of the training clock
  double epoch = 0;
  bool operator==(const PhaseStart&) const = default;
};

// LrRewarmup: the factor on all rates after a change that an optimiser has to get used to.
//
// From `start` on (updates done) the rates grow linearly over `steps` steps: in the first 1/steps of what
// they are without it. steps = 0: there is none. It multiplies what the schedule says, its floor included.
struct LrRewarmup {
  std::int64_t start = 0, steps = 0;
  double factor(std::int64_t step) const {
    if (step < start || step - start + 1 >= steps) return 1.0;
    return static_cast<double>(step - start + 1) / static_cast<double>(steps);
  }
  bool operator==(const LrRewarmup&) const = default;
};

// The scale of the loss (LossScaler).
struct LossScaleState {
  double scale = 0;                // 0: the configuration's first one
  std::int64_t clean_updates = 0;  // in a row since the scale changed or an update was skipped
  std::int64_t skipped_updates = 0;
  bool operator==(const LossScaleState&) const = default;
};

// Host-side progress of training.
struct CheckpointProgress {
  double elapsed_seconds = 0;                                  // of the training clock
  double step_seconds = 0;                                     // of the last step
  std::int64_t reported_step = 0;                              // last line of the log
  double reported_at_seconds = 0;                              // training clock then
  double initial_loss_nats = 0;                                // of the first step
  std::string phase;                                           // its name
  std::vector<std::pair<std::string, std::int64_t>> cycles;    // of warm-restart schedules, by optimiser
  std::vector<std::pair<std::string, double>> ledger_seconds;  // by phase, in order
  // The point at which the present phase began, and the updates done when the optimisers' states were cleared last.
  PhaseStart phase_start;
  std::int64_t optimizer_start_step = 0;
  LrRewarmup rewarm;          // of the last phase that had a re-warm-up
  std::int64_t restarts = 0;  // after failures, by the launcher
  LossScaleState loss_scale;
  std::int64_t shares_validated = 0;  // of train.validations
  bool operator==(const CheckpointProgress&) const = default;
};

struct CheckpointManifest {
  std::int64_t step = 0;    // updates done
  std::int64_t tokens = 0;  // trained on, over all ranks
  std::string run;
  std::string commit;
  std::string instruction_set;  // of the CPU
  std::int64_t seed = 0;        // of all counter-based random numbers: with the step, their whole state
  std::int64_t world_size = 1;
  double ema_decay = 0;  // 0: the tensors hold no averages
  std::string config_sha256;
  std::string config;  // resolved, as TOML
  std::vector<CheckpointFile> files;
  std::vector<CheckpointPlugin> plugins;
  CheckpointData data;
  CheckpointProgress progress;
  LossAccount::State loss;
  DataIdentity identity;
  bool operator==(const CheckpointManifest&) const = default;
};

// JSON text; every number reads back to the same value. Throws run_error if a number is not finite.
std::string to_json(const CheckpointManifest& manifest);
// Reads it; `source` names the file in messages. Throws data_error for invalid JSON, another format version, a missing key, a wrong
// type, or a negative count.
CheckpointManifest manifest_from_json(std::string_view text, const std::string& source);

}  // namespace mulligan
