// The predicted time of a step on several nodes: its transfers, their exposed part, and the useful number of nodes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/plugin/plugin_host.h"
#include "tools/cost/card.h"
#include "tools/cost/step_rehearsal.h"

namespace mulligan {

// `nodes` nodes with `ranks_per_node` ranks each, one card per rank, and `links_per_node` equal links (network
// cards) to the other nodes. Rates in one direction; a link carries both at once.
struct Interconnect {
  int nodes = 1, ranks_per_node = 1, links_per_node = 1;
  double node_bytes_per_second = 0;  // between two cards of a node
  double link_bytes_per_second = 0;  // of one link between a node and the others
  double node_step_seconds = 2e-6;   // what a step of a ring takes besides its bytes: an assumption
  double link_step_seconds = 10e-6;  // the same where it crosses nodes

  int ranks() const { return nodes * ranks_per_node; }
};

// Bytes that a rank sends to the next one of a ring of N ranks (all_to_all: to all others). all_reduce: 2 (N - 1) / N of the
// tensor; reduce_scatter, all_gather and all_to_all: N - 1 shares; broadcast and reduce: the tensor.
double sent_bytes(const RehearsedTransfer& transfer, int ranks);

// Seconds of transfers that are submitted together: 0 for one rank, a ring on one node. On several nodes a ring within each
// node sums (or hands on) the R-th part of each of its R ranks. Then R rings between ranks of equal place on each node run
// side by side over all links. all_to_all sends over the links what a node's ranks send elsewhere. Bytes add up; the steps
// of the rings are paid once for each kind of transfer in the batch.
double batch_seconds(const std::vector<RehearsedTransfer>& batch, const Interconnect& net);

// A step on two queues, the card and the network. Each does one thing at a time. A batch starts once it is submitted and the
// batch before it is done; a join makes the card wait for its batch.
struct StepTimeline {
  double compute_seconds = 0, communication_seconds = 0;
  double step_seconds = 0;
  double exposed_seconds = 0;  // of the communication: that the card waits for
};
// `seconds` of each event that is not a transfer (others are not looked at), and of each batch.
StepTimeline step_timeline(const std::vector<StepEvent>& events, const std::vector<double>& seconds,
                           const std::vector<double>& batch_seconds);

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
  // The first number of nodes whose last node gains less than half of what it should;
  // 0: none up to options.nodes.
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
