#include "framework/train/phase_follower.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/core/sha256.h"

namespace mulligan {

PhaseFollower::PhaseFollower(const RunConfig& config, PhaseDevices& devices, TrainingRows& rows,
                             RunOutputs& outputs)
    : config_(config),
      devices_(devices),
      rows_(rows),
      outputs_(outputs),
      cycles_(config.optimizers.size(), 0),
      loss_scaler_(config.loss_scale) {}

bool PhaseFollower::waits_for_steps() const {
  return devices_.backend().info().threads > 0 || LossScaler::scales(config_.loss_scale, phase());
}

void PhaseFollower::start_at(std::size_t phase) {
  devices_.start_at(phase);
  rows_.read_as(devices_.phase());
}

std::optional<std::size_t> PhaseFollower::coming_phase(const Decision& now, const Trained& so_far) const {
  const std::size_t phase =
      phase_at(config_.phases, devices_.index(), so_far.steps, now.budget_fraction, now.elapsed_seconds);
  return phase == devices_.index() ? std::nullopt : std::optional(phase);
}

void PhaseFollower::begin(std::size_t phase, const Decision& now, const Trained& so_far, int world_size) {
  const Phase& coming = config_.phases[phase];
  const std::int64_t steps = so_far.steps;
  PhaseSwitchRecord record{{}, steps, this->phase().name, coming.name, rates(), {}, coming.reset_optimizer};
  Batch probe;
  if (coming.declared) {
    const LoaderPosition here = rows_.stream().position();
    probe = rows_.stream().next();
    rows_.stream().restore(here);
  }
  const std::optional<Handover> handover = devices_.enter(phase, probe, [&] { return counters(so_far); });
  rows_.read_as(devices_.phase());
  start_ = {steps, now.budget_fraction, now.elapsed_seconds, rows_.epochs()};
  if (coming.reset_optimizer) optimizer_start_ = steps;
  if (coming.rewarm_steps > 0 && steps > 0) rewarm_ = {steps, coming.rewarm_steps};
  set_rates(now, steps);
  skip_batches(steps, world_size);
  // Where a schedule begins or continues, the switch of phases is reported and no restart.
  for (std::size_t i = 0; i < cycles_.size() && coming.lr_policy != LrPolicy::continued; ++i) {
    cycles_[i] = device().groups.groups()[i].rate.cycle;
  }
  record.lr_after = rates();
  announce_phase(now.budget_fraction, steps);
  if (!handover) return;
  static_cast<Handover&>(record) = *handover;
  outputs_.log().print(
      "step {}: state {} on {}; the loss of one row is {:.6f} nats and was {:.6f}; learning rate {:.6g}, was "
      "{:.6g}{}",
      record.step, short_digest(record.state_sha256), devices_.backend().info().description,
      record.loss_after_nats, record.loss_before_nats, record.lr_after.front().second,
      record.lr_before.front().second,
      record.optimizer_reset ? "; the optimisers begin with empty states" : "");
  outputs_.metrics().phase_switch(record);
}

// What the loader of a later record had prepared for the phase before, and loses.
void PhaseFollower::skip_batches(std::int64_t steps, int world_size) {
  const std::int64_t batches = phase().skip_batches;
  if (batches == 0 || steps == 0) return;
  const std::int64_t micro_batches = engine().coming_micro_batches();
  rows_.stream().set_group_spans(micro_batches);
  const std::int64_t rows = batches * micro_batches / world_size;
  for (std::int64_t row = 0; row < rows; ++row) rows_.stream().next();
}

// The rates and the noise of the coming step.
void PhaseFollower::set_rates(const Decision& now, std::int64_t steps) {
  const mlg_progress of_run = run_progress(config_, steps, now.budget_fraction, rows_.epochs());
  device().groups.set_rates(phase_progress(config_, devices_.index(), start_, of_run, now.elapsed_seconds),
                            phase().lr_multiplier * rewarm_.factor(steps));
  engine().set_noise(noise_sigma(config_.noise, phase(), steps, now.budget_fraction), steps);
}

void PhaseFollower::follow_schedules(const Decision& now, const Trained& so_far) {
  set_rates(now, so_far.steps);
  for (std::size_t i = 0; i < cycles_.size(); ++i) {
    const OptimizerGroup& group = device().groups.groups()[i];
    if (group.rate.cycle == cycles_[i]) continue;
    cycles_[i] = group.rate.cycle;
    outputs_.log().print("step {}: warm restart of [optimizer.{}], cycle {} begins at lr {:.6g}",
                         so_far.steps, group.name, group.rate.cycle, group.rate.lr);
    outputs_.metrics().restart(so_far.steps, group.name, group.rate.cycle, group.rate.lr);
  }
}

bool PhaseFollower::make_step(std::int64_t steps_before) {
  const double scale = loss_scaler_.scale(phase());
  engine().set_loss_scale(scale);
  bool updated = engine().step(steps_before + 1 - optimizer_start_, rows_.stream());
  engine().record_metrics(steps_before);
  // A gradient that no lower scale would cure is booked, which ends the run.
  if (LossScaler::scales(config_.loss_scale, phase()) && !loss_scaler_.note(updated)) updated = true;
  if (updated) return true;
  ++optimizer_start_;
  const std::int64_t step = steps_before + 1;
  outputs_.log().print(
      "step {:>6}  the gradient is not finite with the loss scaled by {}: no update, {} from now on", step,
      scale, loss_scaler_.state().scale);
  outputs_.metrics().skipped_update(step, scale);
  return false;
}

std::vector<std::pair<std::string, double>> PhaseFollower::rates() const {
  std::vector<std::pair<std::string, double>> rates;
  for (const OptimizerGroup& group : device().groups.groups()) rates.emplace_back(group.name, group.rate.lr);
  return rates;
}

// What belongs to the state of training and is not a tensor.
std::string PhaseFollower::counters(const Trained& so_far) const {
  const LoaderPosition data = rows_.stream().position();
  return fmt::format("seed {}, step {}, tokens {}, data {} {} {}, optimisers since {}, {}", config_.run.seed,
                     so_far.steps, so_far.tokens, data.consumed_spans, data.shard_visits, data.visit_spans,
                     optimizer_start_, loss_scaler_.text());
}

void PhaseFollower::announce_phase(double budget_fraction, std::int64_t steps) {
  const PhaseRecord record{steps, phase().name, phase_text(phase()), budget_fraction};
  outputs_.log().print("step {}: phase '{}' begins ({}), {:.1f} % of the budget is spent", steps,
                       record.phase, record.way, 100 * budget_fraction);
  outputs_.metrics().phase_start(record);
}

void PhaseFollower::add_to(StepRecord& record) const {
  if (LossScaler::scales(config_.loss_scale, phase())) record.loss_scale = loss_scaler_.state().scale;
  record.phase = phase().name;
  record.lr = rates();
  record.noise_ratio = engine().noise_ratio();
  const std::vector<double> norms = engine().group_gradient_norms();
  for (std::size_t i = 0; i < norms.size(); ++i) {
    record.group_gradient_norm.emplace_back(device().groups.groups()[i].name, norms[i]);
  }
}

std::string PhaseFollower::loss_scale_text() const {
  return LossScaler::scales(config_.loss_scale, phase()) ? loss_scaler_.text() : "";
}

double PhaseFollower::lr_factor() const {
  const OptimizerGroup& first = device().groups.groups().front();
  return first.rate.lr / first.base_lr;
}

void PhaseFollower::save_to(CheckpointProgress& p) const {
  p.phase = phase().name;
  for (std::size_t i = 0; i < cycles_.size(); ++i) {
    p.cycles.emplace_back(device().groups.groups()[i].name, cycles_[i]);
  }
  p.phase_start = start_;
  p.optimizer_start_step = optimizer_start_;
  p.loss_scale = loss_scaler_.state();
  p.rewarm = rewarm_;
}

void PhaseFollower::restore(const CheckpointProgress& p) {
  start_ = p.phase_start;
  optimizer_start_ = p.optimizer_start_step;
  loss_scaler_.restore(p.loss_scale);
  rewarm_ = p.rewarm;
  const auto& groups = device().groups.groups();
  for (const auto& [name, cycle] : p.cycles) {
    const auto group = std::ranges::find(groups, name, &OptimizerGroup::name);
    if (group != groups.end()) cycles_[static_cast<std::size_t>(group - groups.begin())] = cycle;
  }
}

}  // namespace mulligan
