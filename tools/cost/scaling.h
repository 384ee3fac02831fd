// The predicted time of a step on several nodes: its transfers, their exposed part, and the useful number of nodes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/plugin/plugin_host.h"
#include "tools/cost/cost.h"
#include "tools/cost/step_rehearsal.h"

namespace mulligan {

// `nodes` nodes with `ranks_per_node` ranks each, one card per rank, and `links_per_node` equal links (network cards) to the
// other nodes. Rates are those of one direction; links are full duplex.
struct Interconnect {
  int nodes = 1, ranks_per_node = 1, links_per_node = 1;
  double node_bytes_per_second = 0;  // between two cards of a node
  double link_bytes_per_second = 0;  // of one link between a node and the others
  double node_step_seconds = 2e-6;   // latency of a step of a ring (assumed)
  double link_step_seconds = 10e-6;  // the same between nodes (assumed)

  int ranks() const { return nodes * ranks_per_node; }
};

// Returns the bytes of the whole tensor: of the shares of all ranks, where ranks have shares.
double whole_bytes(const RehearsedTransfer& transfer, int ranks);

// Returns the bytes that a rank of a ring of N ranks sends to the next one (all_to_all: to all others). all_reduce:
// 2 (N - 1) / N of the tensor; reduce_scatter, all_gather and all_to_all: N - 1 shares; broadcast and reduce: the tensor.
double sent_bytes(const RehearsedTransfer& transfer, int ranks);

// Returns the seconds of transfers that are submitted together: 0 for one rank, a ring on one node. On several nodes a ring
// within each node reduces (or gathers) one of R parts per rank. Then R rings between ranks of equal local number run in
// parallel over all links. all_to_all sends over the links what a node's ranks send to other nodes. Bytes add up; the latency
// of a ring counts once for each kind of transfer in the batch.
double batch_seconds(const std::vector<RehearsedTransfer>& batch, const Interconnect& net);

// A step on two queues, card and network; each executes one event at a time. A batch starts when it is submitted and the
// previous batch has ended. A join makes the card wait for its batch.
struct StepTimeline {
  double compute_seconds = 0, communication_seconds = 0;
  double step_seconds = 0;
  double exposed_seconds = 0;  // communication for which the card waits
};
// `seconds` has the duration of each event; those of transfers are ignored. `batch_seconds` has that of each batch.
StepTimeline step_timeline(const std::vector<StepEvent>& events, const std::vector<double>& seconds,
                           const std::vector<double>& batch_seconds);

struct ScalingOptions {
  Card card = known_cards().front();
  Interconnect net;  // of the largest number of nodes
};

// A step of one phase on `nodes` nodes.
struct ScalingRow {
  int nodes = 1;
  std::int64_t micro_batches = 0;  // of a step over all ranks
  std::string impossible;          // the reason if there is no such step; then the other members are not set
  StepTimeline time;
  double tokens_per_second = 0;
  // Tokens per second that each node since the previous row adds, relative to those of one node alone.
  double gain = 1;
};

// The bytes of all transfers of one kind in a step.
struct CollectiveRow {
  std::int64_t transfers = 0;
  double tensor_bytes = 0;  // of whole tensors
  double sent_bytes = 0;    // by each rank (sent_bytes())
};

struct PhaseScaling {
  std::string name;
  std::vector<ScalingRow> rows;                     // from 1 node on
  std::map<Collective, CollectiveRow> collectives;  // on the largest number of nodes
  // The first number of nodes with a gain below 0.5; 0: there is none.
  int stops_paying = 0;
};

struct Scaling {
  std::int64_t tokens_per_step = 0;
  std::vector<PhaseScaling> phases;
};

// Returns the smallest multiple of `ranks` that is at least `configured`.
std::int64_t micro_batches_for(std::int64_t configured, int ranks);

// Predicts a step with the same tokens on 1 to options.net.nodes nodes, with micro_batches_for() micro-batches each. `load`
// returns the configuration with that number of micro-batches per step, and throws Error if it is invalid.
Scaling predict_scaling(const std::function<LoadedConfig(std::int64_t)>& load,
                        std::int64_t configured_micro_batches, PluginHost& host,
                        const ScalingOptions& options);

// Returns the prediction as text tables; ends with a newline.
std::string format_scaling(const Scaling& scaling, const ScalingOptions& options);

}  // namespace mulligan
