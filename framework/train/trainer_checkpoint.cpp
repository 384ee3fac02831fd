// Trainer: checkpoints, resuming and stopping.
#include <algorithm>
#include <cmath>
#include <utility>

#include "framework/config/config_report.h"
#include "framework/core/error.h"
#include "framework/core/stop_request.h"
#include "framework/report/machine.h"
#include "framework/step/non_finite.h"
#include "framework/train/replica_check.h"
#include "framework/train/resume.h"
#include "framework/train/trainer.h"

namespace mulligan {

CheckpointManifest Trainer::manifest() const {
  CheckpointManifest m;
  m.step = step_;
  m.tokens = tokens_;
  m.run = config_.run.name;
  m.commit = build_commit();
  m.instruction_set = instruction_set();
  m.seed = config_.run.seed;
  m.world_size = ranks_.group().world_size();
  m.ema_decay = config_.ema.decay;
  m.config_sha256 = config_digest(loaded_);
  m.config = print_resolved(loaded_);
  m.plugins = checkpoint_plugins(loaded_, host_);
  m.identity = data_.data;
  const LoaderPosition position = step_start_ ? *step_start_ : rows_->position();
  m.data = {position.consumed_spans,
            position.shard_visits,
            position.visit_spans,
            rows_->loader().options().row_tokens,
            checkpoint_shards(data_.data.train),
            position.parts};
  CheckpointProgress& p = m.progress;
  p.elapsed_seconds = budget_.elapsed_seconds();
  p.step_seconds = budget_.step_seconds();
  p.reported_step = reported_;
  p.reported_at_seconds = reported_at_;
  p.initial_loss_nats = result_.initial_loss_nats;
  p.phase = phases_.phase().name;
  for (std::size_t i = 0; i < cycles_.size(); ++i) {
    p.cycles.emplace_back(device_->groups.groups()[i].name, cycles_[i]);
  }
  p.phase_start_step = phase_start_.step;
  p.phase_start_fraction = phase_start_.budget_fraction;
  p.phase_start_seconds = phase_start_.elapsed_seconds;
  p.phase_start_epoch = phase_start_.epoch;
  p.optimizer_start_step = optimizer_start_;
  p.loss_scale = loss_scaler_.state().scale;
  p.clean_updates = loss_scaler_.state().clean_updates;
  p.skipped_updates = loss_scaler_.state().skipped_updates;
  p.rewarm_start_step = rewarm_.start;
  p.rewarm_steps = rewarm_.steps;
  Ledger so_far = ledger_;
  so_far.close();
  p.ledger_seconds = so_far.phases();
  p.restarts = result_.start.restarts;
  p.shares_validated = shares_validated_;
  if (metrics_) {
    p.metrics_records = metrics_->mark().records;
    p.metrics_sha256 = metrics_->mark().sha256;
  }
  m.loss = account_.state();
  return m;
}

// The step path copies the state to the host; the rest happens in the background.
void Trainer::begin_checkpoint() {
  {
    const auto patience = ranks_.patience();
    collect_losses();  // also refuses to save a run whose loss is not finite
    require_equal_masters();
    note_checkpoint(checkpoints_.finish());
  }
  // Without patience: transfers, one after the other, of which one that does not end is to be found as in a step.
  engine_->refresh_evaluation_weights();
  const std::vector<StateTensor> state = engine_->gather_state();
  const auto patience = ranks_.patience();
  if (ranks_.first()) checkpoints_.begin(manifest(), engine_->store(), state);
  checkpoint_step_ = step_;
  checkpoint_at_ = budget_.elapsed_seconds();
}

// Nothing is saved of ranks that have drifted apart.
void Trainer::require_equal_masters() {
  if (std::exchange(compared_step_, step_) == step_) return;
  std::vector<std::string> masters;
  for (const PlannedParameter& parameter : parameters_) masters.push_back(master_name(parameter.name()));
  require_equal_replicas(engine_->store(), masters, ranks_.group(), step_);
}

bool Trainer::checkpoint_due() {
  // A failed write ends the run here, at the step after it: what was saved before is untouched.
  note_checkpoint(checkpoints_.completed());
  const CheckpointConfig& config = config_.checkpoint;
  const bool by_steps = config.every_steps > 0 && step_ - checkpoint_step_ >= config.every_steps;
  const bool by_time =
      config.every_seconds > 0 && budget_.elapsed_seconds() - checkpoint_at_ >= config.every_seconds;
  return (by_steps || by_time) && !checkpoints_.busy() && !first_steps_open();
}

// From now on this run is the one to keep.
void Trainer::note_progress_saved() {
  if (replaced_) replaced_->forget();
  replaced_.reset();
}

void Trainer::note_checkpoint(const std::optional<std::filesystem::path>& written) {
  if (!written) return;
  last_checkpoint_ = *written;
  note_progress_saved();
  log_.print("checkpoint written: {}", written->string());
}

void Trainer::resume_from(const Checkpoint& checkpoint) {
  const CheckpointManifest& m = checkpoint.manifest;
  require_same_data(m.data, rows_->loader().options(), data_.data.train);
  require_same_identity(checkpoint, data_.data, config_.data.tokenizer);
  phases_.start_at(saved_phase(m, config_.phases));
  follow_phase();
  const std::vector<StateTensor> state = engine_->whole_state();
  if (ranks_.first()) restore_tensors(checkpoint, engine_->store(), state);
  engine_->share_state(state);
  engine_->refresh_copies();
  rows_->restore({m.data.consumed_spans, m.data.shard_visits, m.data.visit_spans, m.data.parts});
  const CheckpointProgress& p = m.progress;
  step_ = m.step;
  tokens_ = m.tokens;
  reported_tokens_ = m.tokens - (m.step - m.progress.reported_step) * phases_.phase().micro_batches *
                                    tokens_per_micro_batch(config_.train);
  collected_ = m.step;
  reported_ = p.reported_step;
  reported_at_ = p.reported_at_seconds;
  checkpoint_step_ = m.step;
  checkpoint_at_ = p.elapsed_seconds;
  last_checkpoint_ = checkpoint.path;
  phase_start_ = {p.phase_start_step, p.phase_start_fraction, p.phase_start_seconds, p.phase_start_epoch};
  optimizer_start_ = p.optimizer_start_step;
  loss_scaler_.restore({p.loss_scale, p.clean_updates, p.skipped_updates});
  rewarm_ = {p.rewarm_start_step, p.rewarm_steps};
  shares_validated_ = p.shares_validated;
  for (const auto& [name, cycle] : p.cycles) {
    const auto group = std::ranges::find(device_->groups.groups(), name, &OptimizerGroup::name);
    if (group != device_->groups.groups().end()) {
      cycles_[static_cast<std::size_t>(group - device_->groups.groups().begin())] = cycle;
    }
  }
  budget_.restore(p.elapsed_seconds, p.step_seconds);
  ledger_.add(p.ledger_seconds);
  account_.restore(m.loss);
  result_.first_step = m.step;
  result_.resumed_from = checkpoint.path;
  result_.start.restarts = std::max(result_.start.restarts, p.restarts);
  result_.initial_loss_nats = p.initial_loss_nats;
  result_.final_loss_nats = m.loss.ring.empty() ? 0 : m.loss.ring.back();
  log_.print("resumed from '{}': step {}, {:.1f} s of training", checkpoint.path.string(), m.step,
             p.elapsed_seconds);
}

void Trainer::save_before_stopping() {
  const auto patience = ranks_.patience();
  device_->communicator->barrier(engine_->store());
  stop_clock();
  ledger_.enter("save");
  note_checkpoint(checkpoints_.finish());
  if (ranks_.group().agree(checkpoint_step_ != step_ || last_checkpoint_.empty()) != 0) begin_checkpoint();
  note_checkpoint(checkpoints_.finish());
}

// A signal asked for it, between two steps.
void Trainer::stop_early(int signal) {
  if (first_steps_open()) {
    ranks_.note_agreed_stop();
    throw Error(
        ExitCode::interrupted,
        fmt::format(
            "stopped by {} after step {}, before the first {} steps were judged, which ledger.rules = "
            "\"strict\" asks for; nothing is saved: start the run again.",
            signal_name(signal), step_, 2 * FirstSteps::judged));
  }
  save_before_stopping();
  // What the first rank writes is written, and the others know where.
  const std::string checkpoint = ranks_.group().broadcast_text(last_checkpoint_.string());
  ranks_.note_agreed_stop();
  throw Error(
      ExitCode::interrupted,
      fmt::format("stopped by {} after step {}; the checkpoint is '{}'; continue with the same command and "
                  "--resume.",
                  signal_name(signal), step_, checkpoint));
}

// Training cannot go on. What the last whole step left is saved where it is sound: no update was under way
// and every loss is finite: then it throws the error with where that is. Returns where nothing is saved.
void Trainer::stop_at_failure(const Error& error) {
  // Of several ranks the others may not be there to save anything with.
  if (error.code() == ExitCode::interrupted || !ranks_.alone()) return;
  const bool half_updated = step_start_ && engine_->updates_begun() != updates_;
  if (step_ == 0 || half_updated || first_steps_open()) return;
  try {
    note_checkpoint(checkpoints_.finish());
  } catch (const Error&) {  // a write that failed may be what this is about; it is tried once more
  }
  try {
    save_before_stopping();
  } catch (const Error&) {
    return;
  }
  std::string sentence = error.what();
  if (sentence.ends_with('.')) sentence.pop_back();
  throw Error(
      error.code(),
      fmt::format("{}; training has stopped after step {}, the checkpoint is '{}'; fix the {} and continue "
                  "with the same command and --resume.",
                  sentence, step_, last_checkpoint_.string(),
                  error.code() == ExitCode::bad_data ? "data" : "cause"));
}

// Precondition: the loss or the gradient norm of step `number` (from 1) is not finite.
void Trainer::stop_at_non_finite(std::int64_t number, double loss_nats, double gradient_norm) {
  std::string write_failure;
  try {
    note_checkpoint(checkpoints_.finish());
  } catch (const Error& error) {
    write_failure = fmt::format(" (the one being written failed: {})", error.what());
  }
  std::vector<std::string> gradients, masters;
  for (const PlannedParameter& parameter : parameters_) {
    if (parameter.trained()) gradients.push_back(gradient_name(parameter.name()));
    masters.push_back(master_name(parameter.name()));
  }
  const auto gradient = find_non_finite(engine_->store(), gradients);
  const auto master = find_non_finite(engine_->store(), masters);
  const auto& first = gradient ? gradient : master;
  std::string where = "all gradients and weights are finite";
  if (first) {
    where = fmt::format(
        "{} the first tensor that is not finite is '{}' (element {} is {}), one of {} gradients "
        "and {} weights",
        number == step_ ? "after it" : fmt::format("at step {}, when this was seen,", step_), first->tensor,
        first->element, first->value, gradient ? gradient->tensors : 0, master ? master->tensors : 0);
  }
  throw run_error(
      "step {}: the training loss is {} nats and the gradient norm {}; {}; training has stopped and no "
      "weights were written; {}{}; lower the learning rate{} or clip harder (train.clip_norm).",
      number, loss_nats, gradient_norm, where,
      last_checkpoint_.empty() ? std::string("there is no checkpoint yet")
                               : fmt::format("the last good checkpoint is '{}'", last_checkpoint_.string()),
      write_failure,
      LossScaler::scales(config_.loss_scale, phases_.phase())
          ? fmt::format(", begin with a lower loss scale ({} now; loss_scale.initial)", loss_scaler_.text())
          : "");
}

// Tensors of this run and its working memory must fit before any of it is allocated.
void Trainer::require_memory(const DeviceMemory& memory, const Backend& backend) const {
  const Backend::Info info = backend.info();
  if (info.memory_bytes == 0 || static_cast<std::uint64_t>(memory.total_bytes()) <= info.memory_bytes) return;
  constexpr double gigabyte = 1e9;
  throw run_error(
      "the run needs {:.1f} GB of memory ({:.1f} for weights, gradients and optimiser state, {:.1f} for "
      "activations), but {} has {:.1f} GB; raise train.micro_batches, or make the model smaller.",
      static_cast<double>(memory.total_bytes()) / gigabyte,
      static_cast<double>(memory.tensors_bytes) / gigabyte,
      static_cast<double>(memory.arena_bytes + memory.workspace_bytes) / gigabyte, info.description,
      static_cast<double>(info.memory_bytes) / gigabyte);
}

}  // namespace mulligan
