// A run planned without data and without its device: parameters, memory, cost per step; the memory of test-time training.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/plugin/plugin_host.h"
#include "framework/run/parameter_plan.h"
#include "tools/cost/cost.h"
#include "tools/cost/cost_text.h"

namespace mulligan {

struct DryRunOptions {
  Card card = known_cards().front();
  int ranks = 1;  // must divide train.micro_batches
};

struct DryRun : DeviceBytes {
  // One optimiser step of one rank.
  struct Step {
    std::int64_t layers = 0;  // executed
    Cost cost;
  };
  std::string workspace_note = {};     // why the workspace is not known
  std::vector<MemoryRow> arenas = {};  // scratch of each program; the shared arena is as large as the largest
  std::vector<PlannedParameter> tensors = {};
  std::int64_t parameters = 0;
  std::vector<Step> steps = {};  // by phase
};

// Throws config_error where `ranks` ranks do not divide the micro-batches of a step.
void require_divisor(const RunConfig& config, int ranks);
// Layers that a phase executes.
std::int64_t executed_layers(const RunConfig& config, const Phase& phase);

// Builds every program of training and evaluation on the `null` backend, as training does. Resolves the
// plugins' keys in `loaded`. Throws Error.
DryRun dry_run(LoadedConfig& loaded, PluginHost& host, const DryRunOptions& options = {});

// As tables for people; ends with a newline.
std::string format_dry_run(const RunConfig& config, const DryRunOptions& options, const DryRun& plan);

// What test-time training of a configuration takes on its device: planned on the `null` backend, as a run
// does it, without weights and without the device.
// The rows are those while documents are scored; `bytes` is the peak over the plain evaluation before and the scoring.
struct TttMemory : DeviceBytes {
  std::string documents;  // those that the plan assumes
};

// Windows, batches and adapters follow the documents of data.validation. Where that cannot be read, the plan
// is that of the largest batches: a whole one and one that lacks a document, all documents as long as
// ttt.context_tokens (documents of many lengths add only the token numbers of their windows). `loaded` has a
// [ttt] section; its plugins' keys are resolved. Throws Error.
TttMemory plan_ttt_memory(LoadedConfig& loaded, PluginHost& host);

// As a table for people; ends with a newline.
std::string format_ttt_memory(const TttMemory& memory);

}  // namespace mulligan
