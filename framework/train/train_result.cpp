#include "framework/train/train_result.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "framework/core/file.h"
#include "framework/report/machine.h"
#include "framework/run/determinism.h"
#include "framework/run/eval_json.h"
#include "framework/run/run_files.h"
#include "framework/train/training_observer.h"

namespace mulligan {

using Json = nlohmann::ordered_json;

namespace {

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

}  // namespace

void write_result(const RunFiles& files, const LoadedConfig& loaded, const RunResult& result,
                  const RunFacts& facts) {
  Json seconds = Json::object();
  double duration = 0;
  for (const auto& [phase, value] : result.seconds) {
    seconds[phase] = value;
    duration += value;
  }
  Json plugins = Json::array();
  for (const PluginHandle& plugin : facts.plugins) {
    plugins.push_back({{"kind", kind_word(plugin->kind())},
                       {"name", plugin->name()},
                       {"version", plugin->version()},
                       {"state_version", plugin->state_version()},
                       {"sha256", plugin->sha256()}});
  }
  Json json{{"run", loaded.config.run.name},
            {"config", loaded.file},
            {"config_sha256", config_digest(loaded)},
            {"seed", loaded.config.run.seed},
            {"parameters", result.parameters},
            {"steps", result.steps},
            {"tokens", result.tokens},
            {"initial_loss_nats", result.initial_loss_nats},
            {"ln_vocabulary", std::log(static_cast<double>(loaded.config.model.vocabulary))},
            {"final_loss_nats", result.final_loss_nats},
            {"tokens_per_second", result.tokens_per_second},
            {"seconds", seconds},
            {"peak_memory_bytes", result.peak_memory_bytes},
            {"peak_device_memory_bytes", result.peak_device_memory_bytes},
            {"weights", facts.weights_kind},
            {"weights_sha256", facts.weights_sha256},
            {"device", facts.device},
            {"determinism",
             {{"level", word_of(loaded.config.run.determinism)}, {"backend", promise_name(facts.promise)}}},
            {"cpu", cpu_name()},
            {"host", host_name()},
            {"started", process_start_time()},
            {"duration_seconds", duration},
            {"command", process_command()},
            {"ranks", result.start.ranks},
            {"nodes", result.start.nodes},
            {"launcher", result.start.launcher},
            {"restarts", result.start.restarts},
            {"commit", build_commit()},
            {"plugins", plugins},
            {"broken_limits", facts.broken_limits},
            {"data", to_json(facts.data)}};
  if (facts.overlap) json["data"]["overlap"] = to_json(*facts.overlap);
  if (!facts.made.empty()) json["made_on_device"] = to_json(facts.made);
  if (facts.loss) json["train_loss"] = loss_json(*facts.loss, facts.hf_compat);
  if (facts.observers) {
    for (const auto& observer : *facts.observers) observer->add_to_result(json);
  }
  if (!result.resumed_from.empty()) json["resumed_from"] = result.resumed_from.string();
  if (result.validation) {
    json["val_loss_nats"] = result.validation->val_loss_nats;
    json["val_bpb"] = result.validation->val_bpb;
    json["val_tokens"] = result.validation->tokens;
    json["val_bytes"] = result.validation->bytes;
    const Json score = eval_json(*result.validation);
    for (const char* key : {"byte_rule", "by_byte_rule"})
      if (score.contains(key)) json[key] = score[key];
    if (result.validation->masked) json["val_masked"] = true;
  }
  write_file_atomically(files.result(), json.dump(2) + "\n");
}

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

}  // namespace mulligan
