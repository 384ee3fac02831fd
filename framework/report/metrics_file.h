// MetricsFile: metrics.jsonl, one JSON object per line.
//
// {"event":"step", ...} comes every train.log_every steps and "memory" once per process. Others, such as "restart", "phase_switch",
// "skipped_update" and "validation", come when they happen. Names of numbers include the unit; a number that is not finite is null.
// docs/report.md lists all fields; metrics_reader.h reads them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/core/score.h"

namespace mulligan {

struct StepRecord {
  std::int64_t step = 0;          // updates done, including this one
  double loss_nats = 0;           // mean token loss of this step
  std::int64_t window_first = 0;  // the window of steps [first, last) that ends with this one
  std::int64_t window_last = 0;
  double window_loss_nats = 0;  // mean of the steps' losses over the window
  double gradient_norm = 0;     // before clipping
  std::vector<std::pair<std::string, double>> group_gradient_norm;  // the same by optimiser
  std::vector<std::pair<std::string, double>> lr;                   // by optimiser
  std::int64_t tokens = 0;                                          // trained on so far
  double tokens_per_second = 0;                                     // over the window
  double step_seconds = 0;          // mean over the window, on the training clock
  double slowest_step_seconds = 0;  // of the window, on the host's clock
  double elapsed_seconds = 0;       // of the training clock
  double budget_fraction = 0;
  std::string phase;  // its name
  // Means of the whole run so far, over the steps counted; see LossAccount.
  double run_loss_nats = 0;
  std::uint64_t steps_counted = 0;
  std::vector<std::pair<std::string, double>> phase_loss_nats;
  std::int64_t last_first = 0;  // the window [first, last) of the most recent steps
  std::int64_t last_last = 0;
  double last_loss_nats = 0;
  std::optional<double> train_loss_hf;
  std::vector<std::pair<std::string, double>> mix_share;  // of the rows read so far, by row of [[data.mix]]
  std::optional<double> noise_ratio;  // of this step: the norm of the noise over that of the gradient
  std::optional<double> loss_scale;   // of the coming step, in a phase that has one
  std::int64_t steps_skipped = 0;     // so far, without an update
};

struct ValidationRecord : Score {
  std::int64_t step = 0;
  std::string phase = "validate";  // of the ledger: "validate" while training, "evaluate" at the end
};

// The use of the run's device memory.
struct MemoryRecord {
  std::vector<std::pair<std::string, std::int64_t>> tensors_bytes;   // persistent ones by category
  std::vector<std::pair<std::string, std::int64_t>> programs_bytes;  // scratch of each program
  std::int64_t arena_bytes = 0;  // shared by the programs: the largest need, and workspace
};

// A phase that begins after `step` updates.
struct PhaseRecord {
  std::int64_t step = 0;
  std::string phase;  // its name
  std::string way;    // how it makes its steps, in words
  double budget_fraction = 0;
};

// How a declared phase began.
struct Handover {
  std::string state_sha256;                          // of the state of training, the same on both sides
  double loss_before_nats = 0, loss_after_nats = 0;  // of one row, as either phase computes
  std::optional<double> tolerance_nats;  // largest allowed difference; absent: they compute different things
};

// How a phase of the configuration took over from the one before, after `step` updates.
struct PhaseSwitchRecord : Handover {
  std::int64_t step = 0;
  std::string from, to;  // names of the phases
  std::vector<std::pair<std::string, double>> lr_before,
      lr_after;                  // by optimiser: of the last step, of the coming one
  bool optimizer_reset = false;  // the optimisers begin with empty states
};

// How the processes of a run came about.
struct RunStart {
  int ranks = 1, nodes = 1;
  std::string launcher = "none";  // LaunchEnvironment::launcher
  std::int64_t restarts = 0;      // of the ranks after a failure, also before a resume
};

struct AttentionRecord;  // attention_record.h
class JsonLinesWriter;
class TensorboardFile;

class MetricsFile {
 public:
  // Writes nothing: for a rank whose metrics another rank writes.
  MetricsFile() = default;
  // Starts the file anew, or with `continue_after` keeps the events up to that many steps and goes on:
  // what a killed process reported beyond its last checkpoint is reported again. Throws run_error when it
  // cannot be made.
  explicit MetricsFile(const std::filesystem::path& path, std::optional<std::int64_t> continue_after = {});

  // From now on steps and validations also go into an event file in `folder` (tensorboard.h). It begins with the contents of this
  // file.
  void mirror_to(const std::filesystem::path& folder);

  void step(const StepRecord& record);
  void validation(const ValidationRecord& record);
  void memory(const MemoryRecord& record);
  // Step `step`, counted from 1, made no update, because its gradient was not finite at this scale of the loss.
  void skipped_update(std::int64_t step, double loss_scale);
  void restart(std::int64_t step, const std::string& optimizer, std::int64_t cycle, double lr);
  void phase_start(const PhaseRecord& record);
  void phase_switch(const PhaseSwitchRecord& record);
  // A process of a restarted run, or one of several, begins after `step` updates.
  void attempt(std::int64_t step, const RunStart& start);
  void resume(std::int64_t step, const std::string& checkpoint);
  void attention(const AttentionRecord& record);
  void initial_loss(double loss_nats, double ln_vocabulary);

 private:
  void write(const nlohmann::ordered_json& event);

  std::filesystem::path path_;
  std::shared_ptr<JsonLinesWriter> file_;    // null: nothing is written
  std::shared_ptr<TensorboardFile> events_;  // may be null
};

}  // namespace mulligan
