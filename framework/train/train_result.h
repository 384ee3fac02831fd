// What a finished training run found, and result.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/checkpoint/loss_account.h"
#include "framework/config/run_config.h"
#include "framework/data/data_identity.h"
#include "framework/data/text_overlap.h"
#include "framework/eval/evaluate.h"
#include "framework/plugin/plugin.h"
#include "framework/report/run_directory.h"
#include "framework/run/determinism.h"
#include "framework/run/plan_cache_counts.h"

namespace mulligan {

class TrainingObserver;

// How the processes of a run came about.
struct RunStart {
  int ranks = 1, nodes = 1;
  std::string launcher = "none";  // LaunchEnvironment::launcher
  std::int64_t restarts = 0;      // of the ranks after a failure, also before a resume
};

// What a finished training run found; result.json holds all of it and more.
struct RunResult {
  // of config.toml, log.txt, metrics.jsonl, weights.safetensors, result.json
  std::filesystem::path directory;
  std::int64_t parameters = 0;
  std::int64_t steps = 0;
  std::int64_t tokens = 0;       // trained on, over all ranks
  double initial_loss_nats = 0;  // mean token loss of the first step, before any update
  double final_loss_nats = 0;    // of the last step
  std::vector<std::pair<std::string, double>> seconds;  // by phase of the ledger, in order
  double tokens_per_second = 0;                         // over the training phase
  std::int64_t peak_memory_bytes = 0;                   // of the process (VmHWM)
  std::int64_t peak_device_memory_bytes = 0;            // that the backend had allocated at once
  std::optional<EvalResult> validation;                 // absent when [data] names no validation shards
  std::vector<double> step_loss_nats;                   // of the steps that this process made, in order
  std::int64_t first_step = 0;                          // the first of them, counted from 0
  std::filesystem::path resumed_from;                   // a checkpoint, or empty
  RunStart start;
};

// What result.json holds besides RunResult.
struct RunFacts {
  std::vector<PluginHandle> plugins;
  std::string device;                              // the backend's own description
  mlg_determinism promise = MLG_DETERMINISM_NONE;  // the least that the phases' backends keep
  std::vector<std::string> broken_limits;          // of [ledger], with rules = "open"
  std::string weights_kind;                        // "averaged" or "last"
  const LossAccount* loss = nullptr;               // of the whole run
  bool hf_compat = false;
  DataIdentity data;                   // training and validation
  std::optional<TextOverlap> overlap;  // of both; absent without validation
  std::string weights_sha256;          // of the tensors in weights.safetensors
  std::vector<MadeCount> made;         // of all ranks, the clock being that of training
  const std::vector<std::unique_ptr<TrainingObserver>>* observers = nullptr;  // null: there are none
};
void write_result(const RunFiles& files, const LoadedConfig& loaded, const RunResult& result,
                  const RunFacts& facts);
// What a person reads of it at the end.
std::string final_table(const RunResult& result);

}  // namespace mulligan
