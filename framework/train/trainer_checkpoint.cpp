// Trainer: checkpoints, resuming and stopping.
#include <fmt/ranges.h>
#include <algorithm>
#include <utility>

#include "framework/config/config_report.h"
#include "framework/core/error.h"
#include "framework/core/printable.h"
#include "framework/core/sha256.h"
#include "framework/core/stop_request.h"
#include "framework/report/machine.h"
#include "framework/run/run_files.h"
#include "framework/step/loss_scaler.h"
#include "framework/train/trainer.h"

namespace mulligan {

CheckpointManifest Trainer::manifest() const {
  CheckpointManifest m;
  m.step = trained_.steps;
  m.tokens = trained_.tokens;
  m.run = config_.run.name;
  m.commit = build_commit();
  m.instruction_set = instruction_set();
  m.seed = config_.run.seed;
  m.world_size = ranks_.group().world_size();
  m.ema_decay = config_.ema.decay;
  m.config_sha256 = config_digest(loaded_);
  m.config = print_resolved(loaded_);
  m.plugins = checkpoint_plugins(loaded_, host_);
  m.identity = rows_.data().data;
  m.data = {step_start_ ? *step_start_ : rows_.stream().position(),
            rows_.stream().loader().options().row_tokens};
  m.progress.restarts = result_.start.restarts;
  m.progress.shares_validated = shares_validated_;
  clock_.save_to(m.progress);
  m.progress.reported_step = reported_.steps;
  m.progress.reported_at_seconds = reported_seconds_;
  phases_.save_to(m.progress);
  losses_.save_to(m);
  return m;
}

// What every rank computes alike must stay alike: the masters of all ranks are compared by their digest, once after each step,
// for nothing is saved of ranks that have drifted apart. Where a rank's masters are not, bit for bit, those of the most ranks (of
// equally many: those of rank 0), the first such rank throws a run_error that names it, and the others throw what that does to
// them: the verdict of the run.
void Trainer::require_equal_replicas() {
  HostGroup& group = ranks_.group();
  const std::int64_t step = trained_.steps;
  if (std::exchange(compared_step_, step) == step || group.world_size() == 1) return;
  const TensorStore& store = phases_.engine().store();
  Sha256 masters;
  for (const PlannedParameter& parameter : parameters_) {
    masters.update(std::span<const std::byte>(download_bytes(store, master_name(parameter.name()))));
  }
  const std::vector<std::string> all = group.all_gather(masters.hex());
  // The first of those that are equally common.
  const std::string& common = *std::ranges::max_element(
      all, {}, [&](const std::string& digest) { return std::ranges::count(all, digest); });
  std::vector<std::size_t> drifted;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] != common) drifted.push_back(rank);
  }
  if (drifted.empty()) return;
  if (group.rank() != static_cast<int>(drifted.front())) group.barrier();  // where the verdict comes
  throw run_error(
      "after step {} rank{} {} of {} hold{} other weights than the others; what all ranks compute alike has drifted "
      "apart, through a device's fault or a plugin that is not deterministic; continue from the last checkpoint with "
      "--resume once that is fixed.",
      step, drifted.size() == 1 ? "" : "s", fmt::join(drifted, ", "), all.size(),
      drifted.size() == 1 ? "s" : "");
}

// The step path copies the state to the host; the rest happens in the background.
void Trainer::begin_checkpoint() {
  TrainingEngine& engine = phases_.engine();
  {
    const auto patience = ranks_.patience();
    collect_losses();  // also refuses to save a run whose loss is not finite
    require_equal_replicas();
    finish_checkpoint();
  }
  // Without patience: transfers, one after the other, of which one that does not end is to be found as in a step.
  engine.refresh_evaluation_weights();
  const std::vector<StateTensor> state = engine.gather_state();
  const auto patience = ranks_.patience();
  if (ranks_.first()) writer_.begin(manifest(), engine.store(), state);
  begun_steps_ = trained_.steps;
  begun_seconds_ = clock_.elapsed_seconds();
}

void Trainer::resume_from(const Checkpoint& checkpoint) {
  const CheckpointManifest& m = checkpoint.manifest;
  const TrainingData& data = rows_.data();
  RunLog& log = outputs_.log();
  require_same_rows(m.data, rows_.stream().loader().options());
  require_same_identity(checkpoint, data.data, config_.data.tokenizer);
  phases_.start_at(saved_phase(m, config_.phases));
  TrainingEngine& engine = phases_.engine();
  const std::vector<StateTensor> state = engine.whole_state();
  if (ranks_.first()) restore_tensors(checkpoint, engine.store(), state);
  engine.share_state(state);
  engine.refresh_copies();
  rows_.stream().restore(m.data.position);
  trained_ = {m.step, m.tokens};
  phases_.restore(m.progress);
  losses_.restore(m);
  const std::int64_t step_tokens = phases_.phase().micro_batches * tokens_per_micro_batch(config_.train);
  reported_ = {m.progress.reported_step, m.tokens - (m.step - m.progress.reported_step) * step_tokens};
  reported_seconds_ = m.progress.reported_at_seconds;
  clock_.restore(m.progress);
  last_checkpoint_ = checkpoint.path;
  begun_steps_ = m.step;
  begun_seconds_ = m.progress.elapsed_seconds;
  shares_validated_ = m.progress.shares_validated;
  result_.first_step = m.step;
  result_.resumed_from = checkpoint.path;
  result_.start.restarts = std::max(result_.start.restarts, m.progress.restarts);
  log.print("resumed from '{}': step {}, {:.1f} s of training", checkpoint.path.string(), m.step,
            m.progress.elapsed_seconds);
}

void Trainer::save_before_stopping() {
  const auto patience = ranks_.patience();
  phases_.device().communicator->barrier(phases_.engine().store());
  stop_clock();
  clock_.ledger().enter("save");
  finish_checkpoint();
  if (ranks_.group().agree(!checkpoint_holds_all()) != 0) begin_checkpoint();
  finish_checkpoint();
}

// A signal asked for it, between two steps.
void Trainer::stop_early(int signal) {
  save_before_stopping();
  // What the first rank writes is written, and the others know where.
  const std::string checkpoint = ranks_.group().broadcast(last_checkpoint_.string());
  ranks_.note_agreed_stop();
  throw Error(ExitCode::interrupted,
              fmt::format("stopped by {} after step {}; the checkpoint is '{}'; continue with "
                          "the same command and --resume.",
                          signal_name(signal), trained_.steps, checkpoint));
}

// Training cannot go on. What the last whole step left is saved where it is sound: no update was under way
// and every loss is finite: then it throws the error with where that is. Returns where nothing is saved.
void Trainer::stop_at_failure(const Error& error) {
  // With several ranks some may already be gone, and a checkpoint needs all of them.
  if (error.code() == ExitCode::interrupted || !ranks_.alone()) return;
  const bool half_updated = step_start_ && phases_.engine().updates_begun() != updates_;
  if (trained_.steps == 0 || half_updated) return;
  try {
    finish_checkpoint();
  } catch (const Error&) {  // a write that failed may be what this is about; it is tried once more
  }
  try {
    save_before_stopping();
  } catch (const Error&) {
    return;
  }
  throw Error(error.code(),
              fmt::format("{}; training has stopped after step {}, the checkpoint is '{}'; fix the {} "
                          "and continue with the same command and --resume.",
                          without_full_stop(error.what()), trained_.steps, last_checkpoint_.string(),
                          error.code() == ExitCode::bad_data ? "data" : "cause"));
}

void Trainer::stop_at(const UnsoundStep& step) {
  std::string write_failure;
  try {
    finish_checkpoint();
  } catch (const Error& error) {
    write_failure = fmt::format(" (the one being written failed: {})", error.what());
  }
  std::vector<std::string> tensors;
  for (const PlannedParameter& parameter : parameters_) {
    if (parameter.trained()) tensors.push_back(gradient_name(parameter.name()));
  }
  for (const PlannedParameter& parameter : parameters_) tensors.push_back(master_name(parameter.name()));
  const std::string first = first_non_finite(phases_.engine().store(), tensors);
  const std::string scale = phases_.loss_scale_text();
  throw run_error(
      "step {}: the training loss is {} nats and the gradient norm {}; {}; training has stopped and no "
      "weights were written; {}{}; lower the learning rate{} or clip harder (train.clip_norm).",
      step.number, step.loss_nats, step.gradient_norm,
      first.empty() ? "all gradients and weights are finite"
                    : fmt::format("the first tensor that is not finite is '{}'", first),
      last_checkpoint_.empty() ? std::string("there is no checkpoint yet")
                               : fmt::format("the last good checkpoint is '{}'", last_checkpoint_.string()),
      write_failure,
      scale.empty() ? ""
                    : fmt::format(", begin with a lower loss scale ({} now; loss_scale.initial)", scale));
}

// Whether one is due at this time of the training clock, and none is being written. Throws the error of a write that has failed:
// what was saved before is untouched.
bool Trainer::checkpoint_due() {
  note_checkpoint(writer_.completed());
  const CheckpointConfig& config = config_.checkpoint;
  const double seconds = clock_.elapsed_seconds();
  const bool by_steps = config.every_steps > 0 && trained_.steps - begun_steps_ >= config.every_steps;
  const bool by_time = config.every_seconds > 0 && seconds - begun_seconds_ >= config.every_seconds;
  return (by_steps || by_time) && !writer_.busy();
}

void Trainer::note_checkpoint(const std::optional<std::filesystem::path>& written) {
  if (!written) return;
  last_checkpoint_ = *written;
  outputs_.keep();
  outputs_.log().print("checkpoint written: {}", written->string());
}

}  // namespace mulligan
