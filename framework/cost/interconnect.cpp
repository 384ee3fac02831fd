#include "framework/cost/interconnect.h"

#include <algorithm>
#include <set>

namespace mulligan {
namespace {

int ring_steps(Collective kind, int ranks) {
  switch (kind) {
    case Collective::all_reduce:
      return 2 * (ranks - 1);
    case Collective::all_to_all:
      return 1;
    default:
      return ranks - 1;
  }
}

double transfer_seconds(const RehearsedTransfer& transfer, const Interconnect& net) {
  const double sent = sent_bytes(transfer, net.ranks());
  const double within = net.ranks_per_node > 1 ? sent / net.node_bytes_per_second : 0;
  if (net.nodes == 1) return within;
  double across = sent;
  if (transfer.kind == Collective::all_to_all) {
    across = static_cast<double>(transfer.bytes) * net.ranks_per_node * (net.ranks() - net.ranks_per_node);
  }
  return std::max(within, across / net.link_bytes_per_second);
}

}  // namespace

double sent_bytes(const RehearsedTransfer& transfer, int ranks) {
  const auto bytes = static_cast<double>(transfer.bytes);
  switch (transfer.kind) {
    case Collective::all_reduce:
      return 2 * bytes * (ranks - 1) / ranks;
    case Collective::broadcast:
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
  const double step = net.nodes > 1 ? net.link_step_seconds : net.node_step_seconds;
  for (const Collective kind : kinds) seconds += ring_steps(kind, net.ranks()) * step;
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
