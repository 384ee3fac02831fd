#include "framework/train/trainer.h"

#include <algorithm>
#include <csignal>
#include <new>

#include "framework/core/stop_request.h"
#include "framework/run/run_files.h"
#include "framework/run/weights.h"
#include "framework/step/evaluation_weights.h"
#include "framework/step/snapshot.h"

namespace mulligan {

RunResult Trainer::run() {
  if (result_.resumed_from.empty()) {
    warm_up();
    if (config_.phases.size() > 1) phases_.announce_phase(0, 0);
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

// Steps of each phase before the clock starts: first touches of memory and caches are then no part of the budget. Everything that
// they changed returns to the bit, so a run with and without warm-up is the same run.
void Trainer::warm_up() {
  const std::int64_t steps = config_.train.warmup.steps;
  if (steps == 0) return;
  clock_.ledger().enter("warmup");
  const LoaderPosition start = rows_.stream().position();
  for (const auto& device : devices_.devices()) {
    rows_.stream().restore(start);
    warm_up(*device, steps);
  }
  phases_.start_at(0);
  rows_.stream().restore(start);
  phases_.device().communicator->barrier(phases_.engine().store());
  outputs_.log().print("warm-up: {} steps of each phase, then everything restored", steps);
}

// Leaves devices and rows in any phase, and the rows anywhere.
void Trainer::warm_up(TrainingDevice& device, std::int64_t steps) {
  TrainingEngine& engine = device.programs->engine();
  std::vector<std::string> tensors = engine.state_tensors();
  if (config_.train.warmup.keep_muon_momentum) {
    for (const OptimizerGroup& group : device.groups.groups()) {
      for (const std::string& state : group.surviving) std::erase(tensors, state);
    }
  }
  const StateSnapshot initial(engine.store(), tensors);
  device.groups.set_rates(run_progress(config_, 0, 0, rows_.epochs()));
  for (std::size_t phase = 0; phase < config_.phases.size(); ++phase) {
    if (!engine.plan().has(phase)) continue;
    devices_.start_at(phase);
    rows_.read_as(config_.phases[phase]);
    for (std::int64_t number = 1; number <= steps && !ranks_.group().any(stop_signal() != 0); ++number) {
      engine.step(number, rows_.stream());
    }
  }
  initial.restore();
}

void Trainer::train_until_budget_is_spent() {
  clock_.ledger().enter("train");
  run_clock();
  Progress live(&outputs_.log(), {.what = "training", .total = 1, .plain_lines = false},
                [this] { return clock_.elapsed_seconds(); });
  Decision now;
  while (true) {
    now = decide();
    if (now.checkpoint) begin_checkpoint();
    if (now.end || now.stop_signal != 0) break;
    choose_phase(now);
    phases_.follow_schedules(now, trained_);
    make_step();
    if (phases_.waits_for_steps()) collect_losses();
    if (trained_.steps == 1 || trained_.steps % config_.train.log_every == 0)
      report_steps(now.budget_fraction);
    let_observers_look();
    show_progress(live);
    if (validation_due(now.budget_fraction)) validate("validate");
  }
  if (now.stop_signal != 0) stop_early(now.stop_signal);
  end_training(now);
}

// Of what the device was given it has ended all but the last step; the coming step is decided for when that will
// have ended.
Decision Trainer::decide() {
  clock_.await_pace();
  Decision decision;
  if (ranks_.first()) {
    clock_.look_ahead(decision, trained_.steps);
    decision.checkpoint = checkpoint_due();
  }
  return agree_on(decision, ranks_.group());
}

void Trainer::choose_phase(const Decision& now) {
  const auto phase = phases_.coming_phase(now, trained_);
  if (!phase) return;
  collect_losses();  // the steps before belong to the phase before
  phases_.begin(*phase, now, trained_, ranks_.group().world_size());
}

void Trainer::make_step() {
  TrainingEngine& engine = phases_.engine();
  step_start_ = rows_.stream().position();
  updates_ = engine.updates_begun();
  const bool updated = phases_.make_step(trained_.steps);
  ++trained_.steps;
  trained_.tokens += engine.step_tokens();
  losses_.made(engine.step_targets(), updated);
  ranks_.note_step();
  step_start_.reset();
  clock_.step_made(devices_.backend());
}

// The training clock stops meanwhile, once the device has ended the steps that it was given.
void Trainer::let_observers_look() {
  const auto looks = [&](const auto& observer) { return observer->looks_after(config_, trained_.steps); };
  if (std::ranges::none_of(observers_, looks)) return;
  devices_.backend().synchronize();
  clock_.all_ended();
  stop_clock();
  for (const auto& observer : observers_) {
    if (looks(observer)) observer->after_step(observed());
  }
  run_clock();
}

void Trainer::end_training(const Decision& last) {
  if (reported_.steps < trained_.steps) report_steps(last.budget_fraction);
  phases_.device().communicator->barrier(phases_.engine().store());
  clock_.all_ended();
  stop_clock();
  rows_.require_unwritten();
  result_.steps = trained_.steps;
  result_.tokens = trained_.tokens;
  result_.tokens_per_second = static_cast<double>(trained_.tokens) / clock_.elapsed_seconds();
}

std::vector<const Backend*> Trainer::backends() const {
  std::vector<const Backend*> all;
  for (const auto& device : devices_.devices()) all.push_back(device->plugins.backend.get());
  return all;
}

void Trainer::run_clock() {
  made_.clock_starts();
  clock_.run();
  for (const auto& observer : observers_) observer->clock_starts(observed());
}

void Trainer::stop_clock() {
  clock_.stop();
  made_.clock_stops();
  for (const auto& observer : observers_) observer->clock_stops();
}

ObservedRun Trainer::observed() {
  return {.loaded = loaded_,
          .host = host_,
          .ranks = ranks_,
          .parameters = parameters_,
          .phases = devices_,
          .rows = rows_.stream(),
          .validation = validation_.get(),
          .data = rows_.data(),
          .losses = losses_.account(),
          .metrics = ranks_.first() && outputs_.begun() ? &outputs_.metrics() : nullptr,
          .ledger = clock_.ledger(),
          .log = outputs_.log(),
          .resumed = !result_.resumed_from.empty(),
          .first_step = result_.first_step,
          .step = trained_.steps,
          .tokens = trained_.tokens,
          .training_seconds = clock_.elapsed_seconds(),
          .tokens_per_second = result_.tokens_per_second,
          .score = result_.validation ? &*result_.validation : nullptr};
}

// By train.validations, validate_every or validate_at.
bool Trainer::validation_due(double budget_fraction) {
  const TrainConfig& train = config_.train;
  const std::int64_t every = train.validate_every, shares = train.validations;
  const auto reached =
      std::min(shares, static_cast<std::int64_t>(budget_fraction * static_cast<double>(shares + 1)));
  const bool by_share = reached > shares_validated_;
  shares_validated_ = std::max(shares_validated_, reached);
  const bool listed = std::ranges::count(train.validate_at, static_cast<double>(trained_.steps)) > 0;
  return by_share || listed || (every > 0 && trained_.steps % every == 0);
}

// Books its seconds to `phase`: validations on the way ("validate") are not part of the evaluation
// ("evaluate") that a record is allowed so many seconds for.
void Trainer::validate(const std::string& phase) {
  TrainingDevice& device = phases_.device();
  if (!device.programs->evaluator()) return;
  const auto patience = ranks_.patience();
  device.communicator->barrier(phases_.engine().store());
  clock_.all_ended();
  stop_clock();
  const std::string before = clock_.ledger().enter(phase);
  const bool on_the_way = before == "train";
  device.programs->refresh_scored_weights();
  try {
    Evaluator& evaluator = *device.programs->evaluator();
    const auto tokens = static_cast<double>(validation_->tokens.size() - 1);
    Progress progress(&outputs_.log(), {.what = "evaluation", .unit = "tokens", .total = tokens});
    const auto passed = [&](const EvalPosition& position, std::size_t rows) {
      progress.set(tokens * static_cast<double>(position.row) / static_cast<double>(rows));
    };
    result_.validation = evaluate(evaluator, *validation_, ranks_.group(), passed);
  } catch (const Error& error) {
    if (error.code() != ExitCode::interrupted) throw;
    clock_.ledger().rename("evaluate", "evaluate_unfinished");  // it will be made again
    stop_early(stop_signal() != 0 ? stop_signal() : SIGTERM);   // another rank's
  }
  const EvalResult& score = *result_.validation;
  outputs_.metrics().validation({score, trained_.steps, phase});
  outputs_.log().print("step {:>6}  {} ({:.1f} s)", trained_.steps, score_text(score), score.seconds);
  if (!on_the_way) return;
  clock_.ledger().enter(before);
  run_clock();
}

const char* Trainer::saved_weights_kind() const {
  if (scores_averages(config_)) return "averaged";
  return has_evaluation_weights(phases_.device().groups) ? "evaluation" : "last";
}

void Trainer::save() {
  const auto patience = ranks_.patience();
  TrainingEngine& engine = phases_.engine();
  clock_.ledger().enter("save");
  finish_checkpoint();
  const bool wanted = config_.checkpoint.at_end && trained_.steps > 0 && !checkpoint_holds_all();
  if (ranks_.group().agree(wanted) != 0) begin_checkpoint();
  require_equal_replicas();
  engine.refresh_evaluation_weights();
  engine.gather_averages();
  if (!ranks_.first()) return;
  // Results of a run that was continued are about the weights that now go.
  std::error_code ignored;
  for (const auto& path : outputs_.files().results()) std::filesystem::remove_all(path, ignored);
  const bool averaged = scores_averages(config_);
  const auto source = [&](const PlannedParameter& parameter) {
    return saved_tensor(parameter, phases_.device().groups, averaged);
  };
  weights_sha256_ = save_weights(outputs_.files().weights(), engine.store(), parameters_, source,
                                 weights_metadata(loaded_, saved_weights_kind(), rows_.data().data));
  outputs_.keep();
}

}  // namespace mulligan
