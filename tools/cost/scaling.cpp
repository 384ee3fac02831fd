#include "tools/cost/scaling.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "framework/core/error.h"
#include "framework/core/printable.h"
#include "framework/ranks/communicator.h"
#include "tools/cost/call_prediction.h"
#include "tools/cost/cost_text.h"
#include "tools/cost/step_rehearsal.h"

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

double whole_bytes(const RehearsedTransfer& transfer, int ranks) {
  const bool whole = transfer.kind == Collective::all_reduce || transfer.kind == Collective::broadcast ||
                     transfer.kind == Collective::reduce;
  return static_cast<double>(transfer.bytes) * (whole ? 1 : ranks);
}

double sent_bytes(const RehearsedTransfer& transfer, int ranks) {
  return ring_bytes(transfer.kind, whole_bytes(transfer, ranks), ranks);
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

namespace {

StepTimeline timeline_of(const StepRehearsal& rehearsal, const RehearsedStep& step, std::size_t phase,
                         const Card& card, const Interconnect& net) {
  std::vector<double> batches, seconds;
  for (const auto& batch : step.batches) batches.push_back(batch_seconds(batch, net));
  for (const StepEvent& event : step.events) {
    const bool transfer = event.kind == StepEvent::Kind::submit || event.kind == StepEvent::Kind::join;
    seconds.push_back(transfer ? 0
                               : event_cost(rehearsal, event, rehearsal.segment_tokens(phase), card).seconds);
  }
  return step_timeline(step.events, seconds, batches);
}

std::map<Collective, CollectiveRow> collectives_of(const RehearsedStep& step, int ranks) {
  std::map<Collective, CollectiveRow> rows;
  for (const StepEvent& event : step.events) {
    if (event.kind != StepEvent::Kind::submit) continue;
    for (const RehearsedTransfer& transfer : step.batches[event.batch]) {
      CollectiveRow& row = rows[transfer.kind];
      ++row.transfers;
      row.tensor_bytes += whole_bytes(transfer, ranks);
      row.sent_bytes += sent_bytes(transfer, ranks);
    }
  }
  return rows;
}

void add_row(PhaseScaling& phase, ScalingRow row) {
  const ScalingRow* before = nullptr;
  for (const ScalingRow& earlier : phase.rows) {
    if (earlier.impossible.empty()) before = &earlier;
  }
  if (before && row.impossible.empty()) {
    const ScalingRow& first = phase.rows.front();
    const double alone = first.tokens_per_second / first.nodes;
    row.gain = (row.tokens_per_second - before->tokens_per_second) / (row.nodes - before->nodes) / alone;
    if (row.gain < 0.5 && phase.stops_paying == 0) phase.stops_paying = row.nodes;
  }
  phase.rows.push_back(std::move(row));
}

}  // namespace

std::int64_t micro_batches_for(std::int64_t configured, int ranks) {
  return (configured + ranks - 1) / ranks * ranks;
}

Scaling predict_scaling(const std::function<LoadedConfig(std::int64_t)>& load,
                        std::int64_t configured_micro_batches, PluginHost& host,
                        const ScalingOptions& options) {
  Scaling scaling;
  Interconnect net = options.net;
  for (net.nodes = 1; net.nodes <= options.net.nodes; ++net.nodes) {
    ScalingRow row;
    row.nodes = net.nodes;
    row.micro_batches = micro_batches_for(configured_micro_batches, net.ranks());
    std::optional<LoadedConfig> loaded;
    std::unique_ptr<StepRehearsal> rehearsal;
    try {
      loaded = load(row.micro_batches);
      rehearsal = std::make_unique<StepRehearsal>(*loaded, host, net.ranks(), 0);
    } catch (const Error& error) {
      if (net.nodes == 1) throw;
      row.impossible = error.what();
      for (PhaseScaling& phase : scaling.phases) add_row(phase, row);
      continue;
    }
    const RunConfig& config = rehearsal->config();
    scaling.tokens_per_step = config.train.tokens_per_step;
    scaling.phases.resize(config.phases.size());
    for (std::size_t phase = 0; phase < config.phases.size(); ++phase) {
      const RehearsedStep step = rehearsal->step(phase);
      row.time = timeline_of(*rehearsal, step, phase, options.card, net);
      row.tokens_per_second = static_cast<double>(scaling.tokens_per_step) / row.time.step_seconds;
      scaling.phases[phase].name = config.phases[phase].name;
      add_row(scaling.phases[phase], row);
      if (net.nodes == options.net.nodes)
        scaling.phases[phase].collectives = collectives_of(step, net.ranks());
    }
  }
  return scaling;
}

namespace {

void add_scaling(TextLines& text, const ScalingRow& row, int ranks_per_node) {
  const std::string step =
      fmt::format("  {:>5} {:>6} {:>8}", row.nodes, row.nodes * ranks_per_node, row.micro_batches);
  if (!row.impossible.empty()) return text.line("{}   none: {}", step, row.impossible);
  text.line("{} {:>10.2f} {:>10.2f} {:>10.2f} {:>9.2f} {:>13} {:>7.0f}%", step,
            1e3 * row.time.compute_seconds, 1e3 * row.time.communication_seconds,
            1e3 * row.time.exposed_seconds, 1e3 * row.time.step_seconds,
            grouped(static_cast<std::int64_t>(row.tokens_per_second)), 100 * row.gain);
}

void add_scaling(TextLines& text, const PhaseScaling& phase, const Interconnect& net) {
  text.line("\nphase {}:", phase.name);
  text.line("  {:>5} {:>6} {:>8} {:>10} {:>10} {:>10} {:>9} {:>13} {:>8}", "nodes", "ranks", "micro-b.",
            "compute ms", "network ms", "exposed ms", "step ms", "tokens/s", "gain");
  for (const ScalingRow& row : phase.rows) add_scaling(text, row, net.ranks_per_node);
  if (phase.stops_paying > 0) {
    text.line("  scaling stops paying at {} nodes: the last adds less than half of what one makes alone",
              phase.stops_paying);
  } else if (net.nodes > 1) {
    text.line("  up to {} nodes each adds at least half of what one makes alone", net.nodes);
  }
  if (!phase.collectives.empty()) text.line("  transfers of a step on {} nodes:", net.nodes);
  for (const auto& [kind, row] : phase.collectives) {
    text.line("    {:<15} {:>4} tensors of {:>9.3f} MB; each rank sends {:>9.3f} MB", collective_name(kind),
              row.transfers, row.tensor_bytes / 1e6, row.sent_bytes / 1e6);
  }
}

}  // namespace

std::string format_scaling(const Scaling& scaling, const ScalingOptions& options) {
  const Interconnect& net = options.net;
  std::string links;
  if (net.nodes > 1) {
    links =
        fmt::format(", and over {} link{} of {:.0f} Gb/s from each node to the others", net.links_per_node,
                    net.links_per_node == 1 ? "" : "s", net.link_bytes_per_second * 8 / 1e9);
  }
  TextLines text;
  text.line(
      "predicted, not measured: steps of {} tokens (whole segments) on nodes of {} x {}; rings at {:.0f} GB/s "
      "within a node{}",
      grouped(scaling.tokens_per_step), net.ranks_per_node, options.card.description,
      net.node_bytes_per_second / 1e9, links);
  for (const PhaseScaling& phase : scaling.phases) add_scaling(text, phase, net);
  return text.take();
}

}  // namespace mulligan
