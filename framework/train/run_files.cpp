#include "framework/train/run_files.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/config/config_report.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/report/machine.h"
#include "framework/train/weights.h"

namespace mulligan {

using Json = nlohmann::ordered_json;

namespace {

Json loss_json(const LossAccount& loss, bool hf_compat) {
  const LossAccount::State& state = loss.state();
  Json json = Json::object();
  if (state.run.steps_counted == 0) return json;
  json["train_loss_run_nats"] = state.run.mean_nats();
  json["steps_counted"] = state.run.steps_counted;
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

void require_fresh_directory(const RunConfig& config, bool resumed) {
  const RunFiles files{config.run.directory};
  const auto exists = [](const std::filesystem::path& path) {
    std::error_code failed;
    const bool found = std::filesystem::exists(path, failed);
    if (failed) {
      throw config_error(
          "'{}' cannot be looked at: {}; choose another directory with --set run.directory=....",
          path.string(), failed.message());
    }
    return found;
  };
  if (exists(files.result())) {
    throw config_error(
        "the run directory '{}' holds a finished run; choose another with --set run.directory=..., or start "
        "anew there with --overwrite.",
        config.run.directory);
  }
  const std::vector<CheckpointEntry> checkpoints = list_checkpoints(config.checkpoint.directory);
  if (!checkpoints.empty()) {
    throw config_error(
        "'{}' holds checkpoints of a run up to step {}; continue it with --resume, choose another with --set "
        "run.directory=..., or start anew there with --overwrite.",
        config.checkpoint.directory, checkpoints.back().step);
  }
  for (const auto& path : {files.weights(), files.artifact(), files.quantize_result(), files.ttt_result()}) {
    if (resumed || !exists(path)) continue;
    throw config_error(
        "'{}' is of another run; choose another directory with --set run.directory=..., or start anew there "
        "with --overwrite.",
        path.string());
  }
}

std::vector<DirectoryLock> lock_run(const RunConfig& config, std::string_view command) {
  const std::filesystem::path run = std::filesystem::absolute(config.run.directory).lexically_normal();
  const auto checkpoints = std::filesystem::absolute(config.checkpoint.directory).lexically_normal();
  std::vector<DirectoryLock> locks;
  locks.emplace_back(config.run.directory, command);
  if (checkpoints != run) locks.emplace_back(config.checkpoint.directory, command);
  return locks;
}

std::string config_digest(const LoadedConfig& loaded) {
  const std::string resolved = print_resolved(loaded);
  std::string settings;
  for (std::size_t begin = 0; begin < resolved.size();) {
    const std::size_t end = resolved.find('\n', begin);
    const std::string line = resolved.substr(begin, end - begin);
    begin = end + 1;
    if (line.starts_with('#')) continue;
    // The origin is the comment behind the value.
    const std::string setting = line.substr(0, line.rfind("  # "));
    settings += setting.substr(0, setting.find_last_not_of(' ') + 1) + "\n";
  }
  return sha256_hex(settings);
}

std::map<std::string, std::string> weights_metadata(const LoadedConfig& loaded,
                                                    const std::string& weights_kind,
                                                    const DataIdentity& data) {
  return {{"format", "mulligan weights 1"}, {"run", loaded.config.run.name},
          {"weights", weights_kind},        {"config", print_resolved(loaded)},
          {"commit", build_commit()},       {data_identity_key, to_json_text(data)}};
}

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
            {"cpu", processor_name()},
            {"host", host_name()},
            {"started", process_start_time()},
            {"duration_seconds", duration},
            {"command", process_command()},
            {"commit", build_commit()},
            {"plugins", plugins},
            {"broken_limits", facts.broken_limits},
            {"data", to_json(facts.data)}};
  json["data"]["shared_documents"] = {{"shared", facts.shared_text.shared},
                                      {"validation", facts.shared_text.validation_documents},
                                      {"training", facts.shared_text.training_documents},
                                      {"whole", facts.shared_text.whole}};
  if (facts.loss) json["train_loss"] = loss_json(*facts.loss, facts.hf_compat);
  if (!result.resumed_from.empty()) json["resumed_from"] = result.resumed_from.string();
  if (result.validation) {
    json["val_loss_nats"] = result.validation->val_loss_nats;
    json["val_bpb"] = result.validation->val_bpb;
    json["val_tokens"] = result.validation->tokens;
    json["val_bytes"] = result.validation->bytes;
  }
  write_file_atomically(files.result(), json.dump(2) + "\n");
}

}  // namespace mulligan
