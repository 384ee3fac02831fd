// What a training run says: to metrics, log and terminal, and at its end.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/sha256.h"
#include "framework/report/machine.h"
#include "framework/run/clock_check.h"
#include "framework/run/memory_categories.h"
#include "framework/run/run_ledger.h"
#include "framework/train/trainer.h"

namespace mulligan {
namespace {

// The first step's loss of a sound model lies this close to that of the uniform distribution.
constexpr double initial_loss_tolerance_nats = 0.05;

std::string final_table(const RunResult& result) {
  std::string table = "\n";
  const auto row = [&](std::string_view what, const std::string& value) {
    table += fmt::format("{:<28} {}\n", what, value);
  };
  row("parameters", fmt::format("{}", result.parameters));
  row("steps", fmt::format("{}", result.steps));
  row("tokens", fmt::format("{}", result.tokens));
  row("tokens per second", fmt::format("{:.0f}", result.tokens_per_second));
  for (const auto& [phase, seconds] : result.seconds) row(phase + " seconds", fmt::format("{:.2f}", seconds));
  row("peak memory", fmt::format("{:.1f} MB", static_cast<double>(result.peak_memory_bytes) / 1e6));
  row("peak device memory",
      fmt::format("{:.1f} MB", static_cast<double>(result.peak_device_memory_bytes) / 1e6));
  row("training loss, first step", fmt::format("{:.4f} nats", result.initial_loss_nats));
  row("training loss, last step", fmt::format("{:.4f} nats", result.final_loss_nats));
  if (result.validation) {
    row(result.validation->masked ? "val_loss, masked tokens" : "val_loss",
        fmt::format("{:.5f} nats", result.validation->val_loss_nats));
    if (result.validation->bytes > 0) row("val_bpb", fmt::format("{:.5f}", result.validation->val_bpb));
  }
  row("run directory", result.directory.string());
  return table;
}

}  // namespace

void Trainer::record_memory(const DeviceMemory& memory) {
  std::map<std::string, std::int64_t> tensors;
  for (const std::string& name : engine_->store().names()) {
    tensors[name] = engine_->store().reserved_bytes(name);
  }
  MemoryRecord record;
  for (const MemoryRow& row : memory_by_category(tensors))
    record.tensors_bytes.emplace_back(row.what, row.bytes);
  for (const Program* program : device_->programs->programs()) {
    record.programs_bytes.emplace_back(program->name(), program->arena_bytes());
  }
  record.arena_bytes = memory.arena_bytes + memory.workspace_bytes;
  metrics_->memory(record);
}

void Trainer::tell_phase(double budget_fraction) {
  const Phase& phase = phases_.phase();
  const PhaseRecord record{step_, phase.name, phase_text(phase), budget_fraction};
  log_.print("step {}: phase '{}' begins ({}), {:.1f} % of the budget is spent", step_, phase.name,
             record.way, 100 * budget_fraction);
  metrics_->phase_start(record);
}

void Trainer::tell_switch(PhaseSwitchRecord record, const std::optional<Handover>& handover) {
  if (!handover) return;
  record.state_sha256 = handover->state_sha256;
  record.loss_before_nats = handover->loss_before_nats;
  record.loss_after_nats = handover->loss_after_nats;
  record.tolerance_nats = handover->tolerance_nats;
  log_.print(
      "step {}: state {} on {}; the loss of one row is {:.6f} nats and was {:.6f}; learning rate {:.6g}, was "
      "{:.6g}{}",
      step_, short_digest(record.state_sha256), phases_.backend().info().description, record.loss_after_nats,
      record.loss_before_nats, record.lr_after.front().second, record.lr_before.front().second,
      record.optimizer_reset ? "; the optimisers begin with empty states" : "");
  metrics_->phase_switch(record);
}

bool Trainer::report_due() const {
  return step_ == 1 || step_ % config_.train.log_every == 0;
}

// Books the losses of the steps made since the last call. Waits for the device: for reports and checkpoints,
// and after every step only where that costs nothing.
void Trainer::collect_losses() {
  if (collected_ == step_) return;
  const std::vector<StepMetrics> read = engine_->read_metrics(collected_, step_);
  note_ended(pace_.all_ended());
  for (const StepMetrics& metrics : read) {
    const auto targets = static_cast<std::uint64_t>(uncollected_.front().targets);
    if (!uncollected_.front().updated) {
      uncollected_.pop_front();
      account_.skip(collected_++);
      continue;
    }
    const double loss_nats = metrics.loss_sum_nats / static_cast<double>(targets);
    if (!std::isfinite(loss_nats) || !std::isfinite(metrics.gradient_norm)) {
      // It stays uncollected, so that whoever wants to save this state is stopped in the same way.
      stop_at_non_finite(collected_ + 1, loss_nats, metrics.gradient_norm);
    }
    uncollected_.pop_front();
    account_.add(collected_, metrics.loss_sum_nats, targets, phases_.phase().name);
    gradient_norm_ = metrics.gradient_norm;
    result_.step_loss_nats.push_back(loss_nats);
    result_.final_loss_nats = loss_nats;
    ++collected_;
    if (account_.run().steps_counted == 1) check_initial_loss(loss_nats);
  }
}

void Trainer::report_steps(double budget_fraction) {
  for (const auto& observer : observers_) observer->before_report();
  collect_losses();
  StepRecord record;
  record.window_first = reported_;
  record.window_last = step_;
  const double none = std::numeric_limits<double>::quiet_NaN();  // where no step was counted
  record.loss_nats = account_.run().steps_counted > 0 ? result_.final_loss_nats : none;
  record.gradient_norm = gradient_norm_;
  const auto window = account_.window(reported_, step_), last = account_.last_steps();
  record.window_loss_nats = window ? window->mean_nats : none;
  record.run_loss_nats = account_.run().steps_counted > 0 ? account_.run().mean_nats() : none;
  record.steps_counted = account_.run().steps_counted;
  for (const auto& [phase, sums] : account_.phases())
    record.phase_loss_nats.emplace_back(phase, sums.mean_nats());
  record.last_first = last ? last->first : step_;
  record.last_last = step_;
  record.last_loss_nats = last ? last->mean_nats : none;
  if (LossScaler::scales(config_.loss_scale, phases_.phase())) record.loss_scale = loss_scaler_.state().scale;
  record.steps_skipped = account_.state().steps_skipped;
  if (config_.metrics.hf_compat) record.train_loss_hf = account_.train_loss_hf_nats();
  record.step = step_;
  record.lr = rates();
  record.noise_ratio = engine_->noise_ratio();
  const LoaderPosition read = rows_->position();
  for (std::size_t i = 0; i < read.parts.size(); ++i) {
    record.mix_share.emplace_back(data_.parts[i].name, static_cast<double>(read.parts[i].spans) /
                                                           static_cast<double>(read.consumed_spans));
  }
  const std::vector<double> norms = engine_->group_gradient_norms();
  for (std::size_t i = 0; i < norms.size(); ++i) {
    record.group_gradient_norm.emplace_back(device_->groups.groups()[i].name, norms[i]);
  }
  record.tokens = tokens_;
  record.elapsed_seconds = budget_.elapsed_seconds();
  record.step_seconds = (record.elapsed_seconds - reported_at_) / static_cast<double>(step_ - reported_);
  record.slowest_step_seconds = std::exchange(slowest_step_seconds_, 0.0);
  record.tokens_per_second =
      static_cast<double>(tokens_ - reported_tokens_) / (record.elapsed_seconds - reported_at_);
  record.budget_fraction = budget_fraction;
  record.phase = phases_.phase().name;
  metrics_->step(record);
  const double remaining = budget_.remaining_seconds(step_);
  log_.print(
      "step {:>6}  loss {:.4f} nats (mean {:.4f})  norm {:.3f}  lr x{:.3f}  {:.0f} tokens/s  {:.1f} "
      "s  {:.1f} %{}",
      record.step, record.loss_nats, record.window_loss_nats, record.gradient_norm,
      device_->groups.groups()[0].rate.lr / device_->groups.groups()[0].base_lr, record.tokens_per_second,
      record.elapsed_seconds, 100 * budget_fraction,
      remaining > 0 ? fmt::format("  {} left", clock_text(remaining)) : "");
  log_.require_written();
  reported_ = step_;
  reported_tokens_ = tokens_;
  reported_at_ = record.elapsed_seconds;
}

void Trainer::check_initial_loss(double loss_nats) {
  const double uniform = std::log(static_cast<double>(config_.model.vocabulary));
  result_.initial_loss_nats = loss_nats;
  metrics_->initial_loss(loss_nats, uniform);
  const bool near = std::abs(loss_nats - uniform) <= initial_loss_tolerance_nats;
  const bool drawn = config_.init.from.empty();
  log_.print("{}loss at initialisation {:.4f} nats, ln(vocabulary) {:.4f}",
             near || !drawn ? "" : "warning: ", loss_nats, uniform);
}

// The live line; lines for the log are report_steps()'s.
void Trainer::show_progress(Progress& live) {
  if (!live.due()) return;
  const auto tokens = static_cast<double>(tokens_);
  live.set(budget_.fraction(step_),
           fmt::format("step {}  loss {:.3f}  {}", step_, result_.final_loss_nats,
                       rate_text(tokens / budget_.elapsed_seconds(), "tokens")),
           budget_.remaining_seconds(step_));
}

RunResult Trainer::finish() {
  try {
    note_checkpoint(checkpoints_.finish());
  } catch (const Error& error) {  // the weights are saved and scored: the run is not lost
    log_.print("warning: the last checkpoint was not written: {}", error.what());
  }
  if (const auto sentence = account_.inconsistency()) log_.print("warning: {}", *sentence);
  ledger_.close();
  result_.seconds = ledger_.phases();
  result_.peak_memory_bytes = peak_memory_bytes();
  result_.peak_device_memory_bytes = 0;
  for (const auto& device : phases_.devices()) {
    result_.peak_device_memory_bytes +=
        static_cast<std::int64_t>(device->plugins.backend->peak_allocated_bytes());
  }
  ranks_.group().barrier();  // all have come to the end
  for (const auto& observer : observers_) {
    ObservedRun run = observed();
    observer->at_end(run);
  }
  if (!ranks_.first()) return result_;
  RunFacts facts;
  facts.observers = &observers_;
  facts.plugins = plugins_in_use(loaded_, host_);
  facts.device = phases_.backend().info().description;
  facts.promise = phases_.backend().promises();
  for (const auto& device : phases_.devices())
    facts.promise = std::min(facts.promise, device->plugins.backend->promises());
  RunLedger run_ledger;
  run_ledger.note_restarts(result_.start.restarts);
  LedgerEntry booked{LedgerStage::train, ledger_.phases(), {}, {}};
  if (result_.validation) booked.scores.emplace_back("before quantisation", *result_.validation);
  booked.overlap = overlap_;
  run_ledger.book(std::move(booked));
  facts.broken_limits = broken_limits(config_.ledger, run_ledger);
  facts.weights_kind = saved_weights_kind();
  facts.loss = &account_;
  facts.hf_compat = config_.metrics.hf_compat;
  facts.data = data_.data;
  facts.shared_text = data_.shared;
  facts.overlap = overlap_;
  facts.weights_sha256 = weights_sha256_;
  run_ledger.write(files_.directory, config_.ledger);
  require_true_clocks(config_.ledger, log_);
  require_limits(config_.ledger, run_ledger);
  for (const std::string& limit : facts.broken_limits) log_.print("warning: {}", limit);
  write_result(files_, loaded_, result_, facts);
  log_.result(final_table(result_));
  for (const auto& observer : observers_) observer->last_words(log_);
  return result_;
}

}  // namespace mulligan
