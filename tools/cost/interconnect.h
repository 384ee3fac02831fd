// What transfers between ranks cost: rings inside of a node over its own links, and rings between nodes over
// the links that each node has to the others.
#pragma once

#include <vector>

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

// Bytes that a rank sends to the next one of the ring (all_to_all: to all others) for a transfer among N
// ranks: all_reduce 2 (N - 1) / N of the tensor, reduce_scatter and all_gather N - 1 shares, all_to_all N - 1
// shares, broadcast and reduce the tensor.
double sent_bytes(const RehearsedTransfer& transfer, int ranks);

// Seconds of transfers that are submitted together. On one node a ring. On several a ring within each node,
// in which every one of its R ranks comes to hold the sum over the node of its R-th part (or hands on what it
// got of that part), and R rings side by side between ranks of equal place on each node; one after the other.
// So a node sends each byte to the others as often as a ring of nodes does, over all of its links at once. Of an
// all_to_all the links carry what a node's ranks send elsewhere. Bytes add up; the steps of the rings (2 (N -
// 1) of N for all_reduce, 1 for all_to_all, N - 1 otherwise) are paid once for each kind of transfer in the batch.
// One rank alone takes no time.
double batch_seconds(const std::vector<RehearsedTransfer>& batch, const Interconnect& net);

// A step on two queues, of the card and of the network, each of which does one thing at a time. A batch
// starts when it was submitted and the one before it is done; a join makes the card wait for its batch.
struct StepTimeline {
  double compute_seconds = 0, communication_seconds = 0;
  double step_seconds = 0;
  double exposed_seconds = 0;  // of the communication: that the card waits for
};
// `seconds` of each event that is no transfer (others are not looked at), and of each batch.
StepTimeline step_timeline(const std::vector<StepEvent>& events, const std::vector<double>& seconds,
                           const std::vector<double>& batch_seconds);

}  // namespace mulligan
