#include "tools/cost/interconnect.h"

#include <algorithm>
#include <set>

namespace mulligan {
namespace {

int ring_steps(Collective kind, int ranks) {
  switch (kind) {
    case Collective::all_reduce:
      return 2 * (ranks - 1);
    case Collective::all_to_all:
      return ranks > 1 ? 1 : 0;
    default:
      return ranks - 1;
  }
}

// Bytes of the whole tensor: what ranks have shares of, all of them together.
double whole_bytes(const RehearsedTransfer& transfer, int ranks) {
  const bool shares = transfer.kind == Collective::reduce_scatter || transfer.kind == Collective::all_gather;
  return static_cast<double>(transfer.bytes) * (shares ? ranks : 1);
}

// What each of `ranks` sends of a tensor of so many bytes by a ring of them.
double ring_bytes(Collective kind, double bytes, int ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  switch (kind) {
    case Collective::all_reduce:
      return 2 * bytes * others;
    case Collective::broadcast:
    case Collective::reduce:
      return ranks > 1 ? bytes : 0;
    default:
      return bytes * others;
  }
}

double transfer_seconds(const RehearsedTransfer& transfer, const Interconnect& net) {
  const double links = net.link_bytes_per_second * net.links_per_node;
  if (transfer.kind == Collective::all_to_all) {
    const auto share = static_cast<double>(transfer.bytes);
    const double within = share * (net.ranks_per_node - 1) / net.node_bytes_per_second;
    if (net.nodes == 1) return within;
    return std::max(within, share * net.ranks_per_node * (net.ranks() - net.ranks_per_node) / links);
  }
  const double bytes = whole_bytes(transfer, net.ranks());
  double seconds = ring_bytes(transfer.kind, bytes, net.ranks_per_node) / net.node_bytes_per_second;
  // The rings between nodes share the tensor and the links.
  if (net.nodes > 1) seconds += ring_bytes(transfer.kind, bytes, net.nodes) / links;
  return seconds;
}

double step_seconds(Collective kind, const Interconnect& net) {
  const bool once = kind == Collective::all_to_all && net.nodes > 1;
  const double within = once ? 0 : ring_steps(kind, net.ranks_per_node) * net.node_step_seconds;
  return within + (net.nodes > 1 ? ring_steps(kind, net.nodes) * net.link_step_seconds : 0);
}

}  // namespace

double sent_bytes(const RehearsedTransfer& transfer, int ranks) {
  const auto bytes = static_cast<double>(transfer.bytes);
  switch (transfer.kind) {
    case Collective::all_reduce:
      return 2 * bytes * (ranks - 1) / ranks;
    case Collective::broadcast:
    case Collective::reduce:
      return ranks > 1 ? bytes : 0;
    default:
      return bytes * (ranks - 1);
  }
}

double batch_seconds(const std::vector<RehearsedTransfer>& batch, const Interconnect& net) {
  if (net.ranks() == 1) return 0;
  double seconds = 0;
  std::set<Collective> kinds;
  for (const RehearsedTransfer& transfer : batch) {
    seconds += transfer_seconds(transfer, net);
    kinds.insert(transfer.kind);
  }
  for (const Collective kind : kinds) seconds += step_seconds(kind, net);
  return seconds;
}

StepTimeline step_timeline(const std::vector<StepEvent>& events, const std::vector<double>& seconds,
                           const std::vector<double>& batch_seconds) {
  StepTimeline timeline;
  double card = 0, network = 0;                        // when each is free
  std::vector<double> finished(batch_seconds.size());  // when each batch is
  for (std::size_t i = 0; i < events.size(); ++i) {
    const StepEvent& event = events[i];
    if (event.kind == StepEvent::Kind::submit) {
      network = std::max(network, card) + batch_seconds.at(event.batch);
      finished.at(event.batch) = network;
      timeline.communication_seconds += batch_seconds[event.batch];
    } else if (event.kind == StepEvent::Kind::join) {
      timeline.exposed_seconds += std::max(0.0, finished.at(event.batch) - card);
      card = std::max(card, finished[event.batch]);
    } else {
      card += seconds.at(i);
      timeline.compute_seconds += seconds[i];
    }
  }
  timeline.step_seconds = card;
  return timeline;
}

}  // namespace mulligan
