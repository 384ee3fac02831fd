#include "framework/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <new>
#include <utility>

#include "framework/check/start_check.h"
#include "framework/config/config_report.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/sha256.h"
#include "framework/core/stop_request.h"
#include "framework/data/shard.h"
#include "framework/report/machine.h"
#include "framework/run/memory_categories.h"
#include "framework/run/run_ledger.h"
#include "framework/run/weights.h"
#include "framework/step/evaluation_weights.h"
#include "framework/step/snapshot.h"
#include "framework/step/step_graphs.h"

namespace mulligan {
RunResult Trainer::run() {
  if (result_.resumed_from.empty()) {
    warm_up();
    if (config_.phases.size() > 1) tell_phase(0);
  }
  try {
    train_until_budget_is_spent();
  } catch (const Error& error) {
    stop_at_failure(error);
    throw;  // as what it is: whether a transfer failed decides who is blamed
  } catch (const std::bad_alloc&) {
    const Error error = run_error(
        "the machine has not enough memory for this run; make train.tokens_per_step or the model smaller.");
    stop_at_failure(error);
    throw error;
  }
  save();
  validate("evaluate");
  return finish();
}

// Steps of each phase before the clock starts: first touches of memory and caches are then no part of the
// budget. Everything that they changed returns to its initial value; so a run with and without warm-up is the
// same run.
void Trainer::warm_up() {
  if (config_.train.warmup.steps == 0) return;
  ledger_.enter("warmup");
  const LoaderPosition start = rows_->position();
  for (const auto& device : phases_.devices()) warm_up(*device, start);
  phases_.start_at(0);
  follow_phase();
  rows_->restore(start);
  device_->communicator->barrier(engine_->store());
  log_.print("warm-up: {} steps of each phase, then everything restored", config_.train.warmup.steps);
}

void Trainer::warm_up(TrainingDevice& device, const LoaderPosition& start) {
  const WarmupConfig& warmup = config_.train.warmup;
  TrainingEngine& engine = device.programs->engine();
  std::vector<std::string> tensors = engine.state_tensors();
  if (warmup.keep_muon_momentum) {
    for (const OptimizerGroup& group : device.groups.groups()) {
      for (const std::string& state : surviving_states(group)) std::erase(tensors, state);
    }
  }
  const StateSnapshot& initial =
      *before_warm_up_.emplace_back(std::make_unique<StateSnapshot>(engine.store(), tensors));
  rows_->restore(start);
  device.groups.set_rates(progress(0));
  for (std::size_t phase = 0; phase < config_.phases.size(); ++phase) {
    if (!engine.plan().has(phase)) continue;
    phases_.start_at(phase);
    read_rows(config_.phases[phase]);
    for (std::int64_t number = 1; number <= warmup.steps && !ranks_.group().any(stop_signal() != 0);
         ++number) {
      engine.step(number, *rows_);
    }
  }
  initial.restore();
}

// Of what the device was given it has ended all but the last step (StepPace); the coming step is decided for
// when that will have ended.
Trainer::Decision Trainer::decide() {
  note_ended(pace_.wait());
  Decision decision;
  if (ranks_.first()) {
    const std::int64_t under_way = pace_.under_way();
    decision.budget_fraction = budget_.fraction(step_, under_way);
    decision.elapsed_seconds = budget_.coming_step_seconds(under_way);
    decision.end = budget_.ended(decision.budget_fraction, step_, under_way);
    decision.checkpoint = checkpoint_due();
  }
  decision.stop_signal = stop_signal();
  const int own = decision.stop_signal;
  const auto decide = [&](const std::vector<std::string>& signals) {
    for (const std::string& bytes : signals) {
      if (decision.stop_signal == 0) std::memcpy(&decision.stop_signal, bytes.data(), sizeof own);
    }
    return std::string(reinterpret_cast<const char*>(&decision), sizeof decision);
  };
  const std::string decided =
      ranks_.group().consult({reinterpret_cast<const char*>(&own), sizeof own}, decide);
  std::memcpy(&decision, decided.data(), sizeof decision);
  return decision;
}

void Trainer::train_until_budget_is_spent() {
  require_warm_up_undone();
  begin_first_steps();
  ledger_.enter("train");
  run_clock();
  Progress live(&log_, {.what = "training", .total = 1, .plain_lines = false},
                [this] { return budget_.elapsed_seconds(); });
  Decision now;
  while (true) {
    now = decide();
    if (now.checkpoint) begin_checkpoint();
    if (now.end || now.stop_signal != 0) break;
    choose_phase(now);
    follow_schedules(now);
    make_step();
    if (collect_every_step_) collect_losses();
    note_first_step();
    if (report_due()) report_steps(now.budget_fraction);
    let_observers_look();
    show_progress(live);
    if (validation_due(now.budget_fraction)) validate("validate");
  }
  if (now.stop_signal != 0) stop_early(now.stop_signal);
  if (reported_ < step_) report_steps(now.budget_fraction);
  device_->communicator->barrier(engine_->store());
  note_ended(pace_.all_ended());
  stop_clock();
  require_learned_steps();
  require_read_files();
  result_.steps = step_;
  result_.tokens = tokens_;
  result_.tokens_per_second = static_cast<double>(result_.tokens) / budget_.elapsed_seconds();
}

// After a step that began at `budget_fraction`.
bool Trainer::validation_due(double budget_fraction) {
  const std::int64_t every = config_.train.validate_every, shares = config_.train.validations;
  const auto reached =
      std::min(shares, static_cast<std::int64_t>(budget_fraction * static_cast<double>(shares + 1)));
  const bool by_share = reached > shares_validated_;
  shares_validated_ = std::max(shares_validated_, reached);
  return by_share || (every > 0 && step_ % every == 0);
}

void Trainer::make_step() {
  step_start_ = rows_->position();
  updates_ = engine_->updates_begun();
  const Phase& phase = phases_.phase();
  const double scale = loss_scaler_.scale(phase);
  engine_->set_loss_scale(scale);
  bool updated = engine_->step(step_ + 1 - optimizer_start_, *rows_);
  engine_->record_metrics(step_);
  ++step_;
  ranks_.note_step();
  // A gradient that no lower scale would mend is booked, which ends the run.
  if (LossScaler::scales(config_.loss_scale, phase) && !loss_scaler_.note(updated)) updated = true;
  if (!updated) skip_update(scale);
  uncollected_.push_back({engine_->step_targets(), updated});
  tokens_ += engine_->step_tokens();
  step_start_.reset();
  pace_.made(phases_.backend());
}

// On the device, since the last call.
void Trainer::note_ended(std::int64_t steps) {
  if (steps == 0) return;
  budget_.mark_steps(steps);
  slowest_step_seconds_ = std::max(slowest_step_seconds_, budget_.step_seconds());
}

void Trainer::skip_update(double scale) {
  ++optimizer_start_;
  log_.print("step {:>6}  the gradient is not finite with the loss scaled by {}: no update, {} from now on",
             step_, scale, loss_scaler_.state().scale);
  if (metrics_) metrics_->skipped_update(step_, scale);
}

mlg_progress Trainer::progress(double budget_fraction) const {
  const auto consumed = static_cast<double>(rows_->position().consumed_spans);
  return {step_, config_.train.steps, budget_fraction,
          consumed / static_cast<double>(rows_->loader().spans_per_epoch())};
}

void Trainer::choose_phase(const Decision& now) {
  const std::size_t phase =
      phase_at(config_.phases, phases_.index(), step_, now.budget_fraction, now.elapsed_seconds);
  if (phase != phases_.index()) begin_phase(phase, now);
}

void Trainer::begin_phase(std::size_t phase, const Decision& now) {
  collect_losses();  // the steps before belong to the phase before
  PhaseSwitchRecord record{
      step_, phases_.phase().name, config_.phases[phase].name, rates(), {}, false, {}, 0, 0, {}};
  Batch probe;
  if (config_.phases[phase].declared) {
    const LoaderPosition here = rows_->position();
    probe = rows_->next();
    rows_->restore(here);
  }
  const std::optional<Handover> handover = phases_.enter(phase, probe, [this] { return counters(); });
  follow_phase();
  phase_start_ = {step_, now.budget_fraction, now.elapsed_seconds, progress(now.budget_fraction).epoch};
  record.optimizer_reset = phases_.phase().reset_optimizer;
  if (record.optimizer_reset) optimizer_start_ = step_;
  if (phases_.phase().rewarm_steps > 0 && step_ > 0) rewarm_ = {step_, phases_.phase().rewarm_steps};
  set_rates(now);
  skip_batches();
  // Where a schedule begins or is taken up again the switch is told, and no restart.
  for (std::size_t i = 0; i < cycles_.size() && phases_.phase().lr_policy != LrPolicy::continued; ++i) {
    cycles_[i] = device_->groups.groups()[i].rate.cycle;
  }
  record.lr_after = rates();
  tell_phase(now.budget_fraction);
  tell_switch(std::move(record), handover);
}

std::vector<std::pair<std::string, double>> Trainer::rates() const {
  std::vector<std::pair<std::string, double>> rates;
  for (const OptimizerGroup& group : device_->groups.groups()) rates.emplace_back(group.name, group.rate.lr);
  return rates;
}

// What belongs to the state of training and is no tensor.
std::string Trainer::counters() const {
  const LoaderPosition data = rows_->position();
  return fmt::format("seed {}, step {}, tokens {}, data {} {} {}, optimisers since {}, {}", config_.run.seed,
                     step_, tokens_, data.consumed_spans, data.shard_visits, data.visit_spans,
                     optimizer_start_, loss_scaler_.text());
}

// What the loader of a later record had prepared for the phase before, and loses.
void Trainer::skip_batches() {
  const std::int64_t batches = phases_.phase().skip_batches;
  if (batches == 0 || step_ == 0) return;
  const std::int64_t micro_batches = engine_->coming_micro_batches();
  rows_->set_group_spans(micro_batches);
  const std::int64_t rows = batches * micro_batches / ranks_.group().world_size();
  for (std::int64_t row = 0; row < rows; ++row) rows_->next();
}

// The trainer's own part of being in a phase.
void Trainer::follow_phase() {
  device_ = &phases_.device();
  engine_ = &phases_.engine();
  collect_every_step_ =
      phases_.backend().info().threads > 0 || LossScaler::scales(config_.loss_scale, phases_.phase());
  read_rows(phases_.phase());
}

// The rates and the noise of the coming step.
void Trainer::set_rates(const Decision& now) {
  const Phase& phase = phases_.phase();
  const mlg_progress of_run = progress(now.budget_fraction);
  device_->groups.set_rates(
      phase_progress(config_, phases_.index(), phase_start_, of_run, now.elapsed_seconds),
      phase.lr_multiplier * rewarm_.factor(step_));
  engine_->set_noise(noise_sigma(config_.noise, phase, step_, now.budget_fraction), step_);
}

void Trainer::follow_schedules(const Decision& now) {
  set_rates(now);
  for (std::size_t i = 0; i < cycles_.size(); ++i) {
    const OptimizerGroup& group = device_->groups.groups()[i];
    if (group.rate.cycle == cycles_[i]) continue;
    cycles_[i] = group.rate.cycle;
    log_.print("step {}: warm restart of [optimizer.{}], cycle {} begins at lr {:.6g}", step_, group.name,
               group.rate.cycle, group.rate.lr);
    metrics_->restart(step_, group.name, group.rate.cycle, group.rate.lr);
  }
}

// Books its seconds to `phase`: validations on the way ("validate") are not part of the evaluation
// ("evaluate") that a record is allowed so many seconds for.
void Trainer::validate(const std::string& phase) {
  if (!device_->programs->evaluator()) return;
  const auto patience = ranks_.patience();
  device_->communicator->barrier(engine_->store());
  note_ended(pace_.all_ended());
  stop_clock();
  const std::string before = ledger_.enter(phase);
  const std::optional<StateSnapshot> state = before == "train" ? state_before_validation() : std::nullopt;
  device_->programs->refresh_scored_weights();
  Evaluator& evaluator = *device_->programs->evaluator();
  const auto tokens = static_cast<double>(validation_->tokens.size() - 1);
  Progress progress(&log_, {.what = "evaluation", .unit = "tokens", .total = tokens});
  EvaluateHooks hooks;
  hooks.passed = [&](const EvalPosition& position, std::size_t rows) {
    progress.set(evaluator.passed_tokens(position, rows, tokens));
  };
  try {
    result_.validation = evaluate(evaluator, *validation_, ranks_.group(), hooks);
  } catch (const Error& error) {
    if (error.code() != ExitCode::interrupted) throw;
    ledger_.rename("evaluate", "evaluate_unfinished");         // it will be made again
    stop_early(stop_signal() != 0 ? stop_signal() : SIGTERM);  // another rank's
  }
  const EvalResult& score = *result_.validation;
  metrics_->validation({step_, score.val_loss_nats, score.val_bpb, score.tokens, score.bytes, score.seconds,
                        phase, score.masked});
  log_.print("step {:>6}  {} ({:.1f} s)", step_, score_text(score), score.seconds);
  if (before != "train") return;
  require_unchanged(state);
  ledger_.enter(before);
  run_clock();
}

const char* Trainer::saved_weights_kind() const {
  if (config_.ema.decay > 0 && config_.eval.use_ema) return "averaged";
  return has_evaluation_weights(device_->groups) ? "evaluation" : "last";
}

void Trainer::save() {
  const auto patience = ranks_.patience();
  ledger_.enter("save");
  note_checkpoint(checkpoints_.finish());
  const bool last_step_saved = checkpoint_step_ == step_ && !last_checkpoint_.empty();
  if (ranks_.group().agree(config_.checkpoint.at_end && step_ > 0 && !last_step_saved &&
                           !first_steps_open()) != 0)
    begin_checkpoint();
  require_equal_masters();
  engine_->refresh_evaluation_weights();
  engine_->gather_averages();
  if (!ranks_.first()) return;
  // Results of a run that was continued are about the weights that now go.
  std::error_code ignored;
  for (const auto& path : files_.results()) std::filesystem::remove_all(path, ignored);
  const bool averaged = config_.ema.decay > 0 && config_.eval.use_ema;
  const auto source = [&](const PlannedParameter& parameter) {
    return saved_tensor(parameter, device_->groups, averaged);
  };
  weights_sha256_ = save_weights(files_.weights(), engine_->store(), parameters_, source,
                                 weights_metadata(loaded_, saved_weights_kind(), data_.data));
  note_progress_saved();
}

}  // namespace mulligan
