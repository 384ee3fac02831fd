// A run planned without data and without its device: parameters, memory, cost per step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/model/elements/stages.h"
#include "framework/plugin/plugin_host.h"
#include "framework/run/device_plan.h"
#include "tools/cost/cost.h"

namespace mulligan {

struct DryRunOptions {
  Card card = known_cards().front();
  int ranks = 1;  // must divide train.micro_batches
};

struct DryRun {
  struct Tensor {
    std::string name;
    std::string shape;  // "[22, 512, 512]"
    std::int64_t elements = 0;
    std::string master_dtype;
    std::string optimizer;  // NAME of [optimizer.NAME], or no_optimizer
    std::string plugin;     // its; empty without one
    double lr_multiplier = 1;
    double weight_decay_multiplier = 1;
    std::string communication;
  };
  // One optimiser step of one rank.
  struct Step {
    std::string phase;        // its name
    std::int64_t layers = 0;  // executed
    Cost cost;
  };
  // The weights as matmuls read them when the model is scored; LayerCast makes them smaller.
  struct ReadWeights {
    std::int64_t projection_elements = 0, other_elements = 0;
    std::string projection_dtype;
    std::int64_t bytes = 0;
  };
  std::int64_t parameters = 0;
  ReadWeights read_weights;
  std::vector<StageList> stages;  // the elements of the model
  std::vector<Tensor> tensors;
  // Bytes of one rank on its device: persistent tensors by category, the shared arena, and, where known,
  // the workspace of the kernels; they add up to the total, which is what
  // Backend::peak_allocated_bytes() comes to.
  std::vector<MemoryRow> memory;
  std::vector<MemoryRow> arenas;  // scratch of each program; the shared arena is as large as the largest
  std::int64_t memory_bytes = 0;
  // Absent, with the reason, where the configured backend cannot be started here.
  std::optional<std::int64_t> workspace_bytes;
  std::string workspace_note;
  std::vector<Step> steps;  // one for each phase
  std::int64_t tokens_per_step = 0;
  int ranks = 1;
  Card card;
};

// Throws config_error where `ranks` ranks do not divide the micro-batches of a step.
void require_divisor(const RunConfig& config, int ranks);

// Builds every program of training and evaluation on the `null` backend, as training does. Resolves the
// plugins' keys in `loaded`. Throws Error.
DryRun dry_run(LoadedConfig& loaded, PluginHost& host, const DryRunOptions& options = {});

// As tables for people; ends with a newline.
std::string format_dry_run(const DryRun& plan);

}  // namespace mulligan
