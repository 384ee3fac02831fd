// CheckpointKeeper: when a run's checkpoints are due, and which of them is the last good one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>

#include "framework/checkpoint/checkpoint_writer.h"
#include "framework/config/train_config.h"
#include "framework/train/run_outputs.h"

namespace mulligan {

class CheckpointKeeper {
 public:
  // Both must outlive this object.
  CheckpointKeeper(const CheckpointConfig& config, RunOutputs& outputs)
      : config_(config), outputs_(outputs), writer_(config.directory, config.keep) {}

  // Whether one is due, at this time of the training clock, and none is being written. Throws the error of a write
  // that has failed: what was saved before is untouched.
  bool due(std::int64_t steps, double seconds);
  // All ranks: the state after so many steps is being saved; of the first rank write() follows.
  void begin(std::int64_t steps, double seconds);
  // Copies the state to the host; the rest happens in the background. Precondition: finished.
  void write(CheckpointManifest manifest, const TensorStore& store, const std::vector<StateTensor>& state) {
    writer_.begin(std::move(manifest), store, state);
  }
  // Waits for the one that is being written; throws where that has failed.
  void finish() { note(writer_.finish()); }
  // Waits for it, whatever becomes of it: of a run that has failed.
  void wait() noexcept;

  const std::filesystem::path& last() const { return last_; }  // complete; empty before the first
  // Whether the state after so many steps is in one, and one is complete.
  bool holds(std::int64_t steps) const { return begun_steps_ == steps && !last_.empty(); }
  // The run goes on from this one.
  void restore(const std::filesystem::path& path, std::int64_t steps, double seconds);

 private:
  void note(const std::optional<std::filesystem::path>& written);

  const CheckpointConfig& config_;
  RunOutputs& outputs_;
  CheckpointWriter writer_;
  std::filesystem::path last_;
  std::int64_t begun_steps_ = 0;  // updates done when the last one was begun
  double begun_seconds_ = 0;      // training clock then
};

}  // namespace mulligan
