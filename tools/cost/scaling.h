// How a step would scale over nodes: what its transfers move, what of them is exposed, and where a further
// node stops paying. By arithmetic; nothing is measured.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/plugin/plugin_host.h"
#include "tools/cost/card.h"
#include "tools/cost/interconnect.h"

namespace mulligan {

struct ScalingOptions {
  Card card = known_cards().front();
  int nodes = 1, gpus_per_node = 1;
  double link_bytes_per_second = 0;  // of a link between nodes, in one direction; not looked at for one node
  int links_per_node = 1;
};

// A step of one phase on so many nodes.
struct ScalingRow {
  int nodes = 1;
  std::int64_t micro_batches = 0;  // of a step over all ranks
  std::string impossible;          // why there is no such step; then the rest is not set
  StepTimeline time;
  double tokens_per_second = 0;
  // Tokens per second that the last node adds (of several since the row before, each), as a share of what one
  // node makes alone.
  double gain = 1;
};

// What the transfers of a kind move in a step.
struct CollectiveRow {
  Collective kind = Collective::all_reduce;
  std::int64_t transfers = 0;
  double tensor_bytes = 0;  // of whole tensors
  double sent_bytes = 0;    // by each rank (sent_bytes())
};

struct PhaseScaling {
  std::string name;
  std::vector<ScalingRow> rows;            // 1 to options.nodes
  std::vector<CollectiveRow> collectives;  // on options.nodes nodes
  // The first number of nodes whose last node gains less than half of what it should; 0: none up to
  // options.nodes.
  int stops_paying = 0;
};

struct Scaling {
  ScalingOptions options;
  std::int64_t tokens_per_step = 0;
  std::vector<PhaseScaling> phases;
};

// The configuration with so many micro-batches per step; throws Error where there is no such one.
using LoadWithMicroBatches = std::function<LoadedConfig(std::int64_t)>;

// The fewest micro-batches per step, not below `configured`, that `ranks` ranks divide.
std::int64_t micro_batches_for(std::int64_t configured, int ranks);

// A step of the same tokens on 1 to options.nodes nodes, each with micro_batches_for() micro-batches.
Scaling predict_scaling(const LoadWithMicroBatches& load, std::int64_t configured_micro_batches,
                        PluginHost& host, const ScalingOptions& options);

// As tables for people; ends with a newline.
std::string format_scaling(const Scaling& scaling);

}  // namespace mulligan
