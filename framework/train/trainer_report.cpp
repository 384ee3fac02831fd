// What a training run says: to metrics, log and terminal, and at its end.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "framework/core/file.h"
#include "framework/core/json_file.h"
#include "framework/core/temporary_path.h"
#include "framework/report/machine.h"
#include "framework/run/eval_json.h"
#include "framework/run/run_files.h"
#include "framework/run/run_ledger.h"
#include "framework/run/run_plugins.h"
#include "framework/train/trainer.h"

namespace mulligan {
namespace {

// The first step's loss of a sound model lies this close to that of the uniform distribution.
constexpr double initial_loss_tolerance_nats = 0.05;

using Json = nlohmann::ordered_json;

Json loss_json(const LossAccount& loss, bool hf_compat) {
  const LossAccount::State& state = loss.state();
  Json json = Json::object();
  if (state.run.steps_counted == 0) return json;
  json["train_loss_run_nats"] = state.run.mean_nats();
  json["steps_counted"] = state.run.steps_counted;
  json["steps_skipped"] = state.steps_skipped;
  json["window"] = {state.step_first, state.step_last};
  for (const auto& [phase, sums] : state.phases) {
    json["train_loss_phase_nats"][phase] = {{"nats", sums.mean_nats()},
                                            {"steps_counted", sums.steps_counted}};
  }
  if (const auto last = loss.last_steps()) {
    json["train_loss_last_k"] = {{"nats", last->mean_nats}, {"window", {last->first, last->last}}};
  }
  if (hf_compat) json["train_loss_hf"] = loss.train_loss_hf_nats();
  return json;
}

// What a person reads of the result at the end.
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
  StepRecord record;
  record.window_first = reported_.steps;
  record.window_last = record.step = trained_.steps;
  record.tokens = trained_.tokens;
  record.budget_fraction = budget_fraction;
  losses_.add_to(record, config_.metrics.hf_compat);
  phases_.add_to(record);
  record.mix_share = rows_.mix_shares();
  record.elapsed_seconds = clock_.elapsed_seconds();
  const double seconds = record.elapsed_seconds - reported_seconds_;
  record.step_seconds = seconds / static_cast<double>(record.step - reported_.steps);
  record.slowest_step_seconds = clock_.take_slowest_step_seconds();
  record.tokens_per_second = static_cast<double>(record.tokens - reported_.tokens) / seconds;
  outputs_.metrics().step(record);
  const double remaining = clock_.remaining_seconds(record.step);
  outputs_.log().print(
      "step {:>6}  loss {:.4f} nats (mean {:.4f})  norm {:.3f}  lr x{:.3f}  {:.0f} tokens/s  {:.1f} s  {:.1f} %{}",
      record.step, record.loss_nats, record.window_loss_nats, record.gradient_norm, phases_.lr_factor(),
      record.tokens_per_second, record.elapsed_seconds, 100 * record.budget_fraction,
      remaining > 0 ? fmt::format("  {} left", clock_text(remaining)) : "");
  outputs_.log().require_written();
  reported_ = trained_;
  reported_seconds_ = record.elapsed_seconds;
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
    finish_checkpoint();
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
  for (const auto& observer : observers_) observer->at_end(observed());
  const Json made = made_.counts(ranks_.group());
  if (!ranks_.first()) return result_;
  LedgerEntry booked{LedgerStage::train, clock_.ledger().phases(), {}, {}, overlap_};
  if (result_.validation) booked.scores.emplace_back("before quantisation", *result_.validation);
  const RunLedger run_ledger =
      close_entry(std::move(booked), outputs_.files().directory, config_.ledger, log);
  write_result(broken_limits(config_.ledger, run_ledger), made);
  log.result(final_table(result_));
  for (const auto& observer : observers_) observer->last_words(log);
  return result_;
}

// result.json. `broken`: budgets of [ledger], with rules = "open". `made`: of all ranks, the clock being that of training.
void Trainer::write_result(const std::vector<std::string>& broken, const Json& made) {
  mlg_determinism promise = devices_.backend().promises();  // the least that the phases' backends keep
  for (const auto& device : devices_.devices())
    promise = std::min(promise, device->plugins.backend->promises());
  double duration = 0;
  for (const auto& [phase, value] : result_.seconds) duration += value;
  Json plugins = Json::array();
  for (const PluginHandle& plugin : plugins_in_use(loaded_, host_)) {
    plugins.push_back({{"kind", kind_word(plugin->kind())},
                       {"name", plugin->name()},
                       {"state_version", plugin->state_version()},
                       {"sha256", plugin->sha256()}});
  }
  Json json{
      {"run", config_.run.name},
      {"config", loaded_.file},
      {"config_sha256", config_digest(loaded_)},
      {"seed", config_.run.seed},
      {"parameters", result_.parameters},
      {"steps", result_.steps},
      {"tokens", result_.tokens},
      {"initial_loss_nats", result_.initial_loss_nats},
      {"ln_vocabulary", std::log(static_cast<double>(config_.model.vocabulary))},
      {"final_loss_nats", result_.final_loss_nats},
      {"tokens_per_second", result_.tokens_per_second},
      {"seconds", object_of(result_.seconds)},
      {"peak_memory_bytes", result_.peak_memory_bytes},
      {"peak_device_memory_bytes", result_.peak_device_memory_bytes},
      {"weights", saved_weights_kind()},
      {"weights_sha256", weights_sha256_},
      {"device", devices_.backend().info().description},
      {"determinism", {{"level", word_of(config_.run.determinism)}, {"backend", promise_name(promise)}}},
      {"cpu", cpu_name()},
      {"host", host_name()},
      {"started", process_start_time()},
      {"duration_seconds", duration},
      {"command", process_command()},
      {"ranks", result_.start.ranks},
      {"nodes", result_.start.nodes},
      {"launcher", result_.start.launcher},
      {"restarts", result_.start.restarts},
      {"commit", build_commit()},
      {"plugins", plugins},
      {"broken_limits", broken},
      {"data", to_json(rows_.data().data)}};
  if (overlap_) json["data"]["overlap"] = to_json(*overlap_);
  if (!made.empty()) json["made_on_device"] = made;
  json["train_loss"] = loss_json(losses_.account(), config_.metrics.hf_compat);
  for (const auto& observer : observers_) observer->add_to_result(json);
  if (!result_.resumed_from.empty()) json["resumed_from"] = result_.resumed_from.string();
  if (result_.validation) {
    json["val_loss_nats"] = result_.validation->val_loss_nats;
    json["val_bpb"] = result_.validation->val_bpb;
    json["val_tokens"] = result_.validation->tokens;
    json["val_bytes"] = result_.validation->bytes;
    const Json score = eval_json(*result_.validation);
    for (const char* key : {"byte_rule", "by_byte_rule"})
      if (score.contains(key)) json[key] = score[key];
    if (result_.validation->masked) json["val_masked"] = true;
  }
  write_file_atomically(outputs_.files().result(), json.dump(2) + "\n");
}

}  // namespace mulligan
