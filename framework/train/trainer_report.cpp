// What a training run says: to metrics, log and terminal, and at its end.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "framework/report/machine.h"
#include "framework/run/run_ledger.h"
#include "framework/train/trainer.h"

namespace mulligan {
namespace {

// The first step's loss of a sound model lies this close to that of the uniform distribution.
constexpr double initial_loss_tolerance_nats = 0.05;

}  // namespace

// Books the losses of the steps made since the last call. Waits for the device: for reports and checkpoints,
// and after every step only where that costs nothing.
void Trainer::collect_losses() {
  if (losses_.collected() == trained_.steps) return;
  const std::vector<StepMetrics> read = phases_.engine().read_metrics(losses_.collected(), trained_.steps);
  clock_.all_ended();
  const bool counted_before = losses_.any_counted();
  const auto unsound = losses_.collect(read, phases_.phase().name);
  if (!counted_before && losses_.any_counted()) tell_first_loss();
  if (unsound) stop_at(*unsound);
}

void Trainer::tell_first_loss() {
  const double uniform = std::log(static_cast<double>(config_.model.vocabulary)), loss = losses_.first_nats();
  outputs_.metrics().initial_loss(loss, uniform);
  const bool expected = std::abs(loss - uniform) <= initial_loss_tolerance_nats || !config_.init.from.empty();
  outputs_.log().print("{}loss at initialisation {:.4f} nats, ln(vocabulary) {:.4f}",
                       expected ? "" : "warning: ", loss, uniform);
}

void Trainer::report_steps(double budget_fraction) {
  for (const auto& observer : observers_) observer->before_report();
  collect_losses();
  StepRecord record = reports_.window(trained_);
  record.budget_fraction = budget_fraction;
  losses_.add_to(record, config_.metrics.hf_compat);
  phases_.add_to(record);
  record.mix_share = rows_.mix_shares();
  reports_.write(std::move(record), clock_, phases_.lr_factor());
}

// The live line; lines for the log are report_steps()'s.
void Trainer::show_progress(Progress& live) {
  if (!live.due()) return;
  const auto tokens = static_cast<double>(trained_.tokens);
  live.set(clock_.fraction(trained_.steps),
           fmt::format("step {}  loss {:.3f}  {}", trained_.steps, losses_.last_nats(),
                       rate_text(tokens / clock_.elapsed_seconds(), "tokens")),
           clock_.remaining_seconds(trained_.steps));
}

RunResult Trainer::finish() {
  RunLog& log = outputs_.log();
  try {
    checkpoints_.finish();
  } catch (const Error& error) {  // the weights are saved and scored: the run is not lost
    log.print("warning: the last checkpoint was not written: {}", error.what());
  }
  if (const auto sentence = losses_.account().inconsistency()) log.print("warning: {}", *sentence);
  clock_.ledger().close();
  result_.seconds = clock_.ledger().phases();
  result_.initial_loss_nats = losses_.first_nats();
  result_.final_loss_nats = losses_.last_nats();
  result_.step_loss_nats = losses_.step_nats();
  result_.peak_memory_bytes = peak_memory_bytes();
  for (const auto& device : devices_.devices()) {
    result_.peak_device_memory_bytes +=
        static_cast<std::int64_t>(device->plugins.backend->peak_allocated_bytes());
  }
  const auto patience = ranks_.patience();
  ranks_.group().barrier();  // all have come to the end
  for (const auto& observer : observers_) {
    ObservedRun run = observed();
    observer->at_end(run);
  }
  RunFacts facts = this->facts();
  RunLedger run_ledger;
  LedgerEntry booked{LedgerStage::train, clock_.ledger().phases(), {}, {}, overlap_};
  if (result_.validation) booked.scores.emplace_back("before quantisation", *result_.validation);
  run_ledger.book(std::move(booked));
  facts.broken_limits = broken_limits(config_.ledger, run_ledger);
  if (ranks_.first()) run_ledger.write(outputs_.files().directory, config_.ledger);
  if (!ranks_.first()) return result_;
  require_limits(config_.ledger, run_ledger);
  for (const std::string& limit : facts.broken_limits) log.print("warning: {}", limit);
  if (!facts.made.empty()) {
    log.print("made on the device, before the training clock + on it + after it, all ranks: {}",
              made_text(facts.made));
  }
  write_result(outputs_.files(), loaded_, result_, facts);
  log.result(final_table(result_));
  for (const auto& observer : observers_) observer->last_words(log);
  return result_;
}

RunFacts Trainer::facts() {
  RunFacts facts;
  facts.observers = &observers_;
  facts.plugins = plugins_in_use(loaded_, host_);
  facts.device = devices_.backend().info().description;
  facts.promise = devices_.backend().promises();
  for (const auto& device : devices_.devices()) {
    facts.promise = std::min(facts.promise, device->plugins.backend->promises());
  }
  facts.weights_kind = saved_weights_kind();
  facts.loss = &losses_.account();
  facts.hf_compat = config_.metrics.hf_compat;
  facts.data = rows_.data().data;
  facts.overlap = overlap_;
  facts.weights_sha256 = weights_sha256_;
  facts.made = made_.counts(ranks_.group());
  return facts;
}

}  // namespace mulligan
