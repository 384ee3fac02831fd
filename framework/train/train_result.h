// What a finished training run found.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/eval/evaluate.h"

namespace mulligan {

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

}  // namespace mulligan
