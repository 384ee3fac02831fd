#include "tools/cost/scaling.h"

#include <map>
#include <memory>
#include <optional>

#include "framework/core/error.h"
#include "tools/cost/event_cost.h"
#include "tools/cost/step_rehearsal.h"

namespace mulligan {
namespace {

Interconnect net_of(const ScalingOptions& options, int nodes) {
  Interconnect net;
  net.nodes = nodes;
  net.ranks_per_node = options.gpus_per_node;
  net.links_per_node = options.links_per_node;
  net.node_bytes_per_second = options.card.node_link_bytes_per_second;
  net.link_bytes_per_second = options.link_bytes_per_second;
  return net;
}

std::vector<double> seconds_of(const RehearsedStep& step, const EventCost& cost) {
  std::vector<double> seconds;
  for (const StepEvent& event : step.events) {
    const bool transfer = event.kind == StepEvent::Kind::submit || event.kind == StepEvent::Kind::join;
    seconds.push_back(transfer ? 0 : cost.row(event).seconds);
  }
  return seconds;
}

StepTimeline timeline_of(const RehearsedStep& step, const EventCost& cost, const Interconnect& net) {
  std::vector<double> batches;
  for (const auto& batch : step.batches) batches.push_back(batch_seconds(batch, net));
  return step_timeline(step.events, seconds_of(step, cost), batches);
}

std::vector<CollectiveRow> collectives_of(const RehearsedStep& step, int ranks) {
  std::map<Collective, CollectiveRow> rows;
  for (const StepEvent& event : step.events) {
    if (event.kind != StepEvent::Kind::submit) continue;
    for (const RehearsedTransfer& transfer : step.batches[event.batch]) {
      CollectiveRow& row = rows[transfer.kind];
      const bool whole = transfer.kind == Collective::all_reduce || transfer.kind == Collective::broadcast ||
                         transfer.kind == Collective::reduce;
      row.kind = transfer.kind;
      ++row.transfers;
      row.tensor_bytes += static_cast<double>(transfer.bytes) * (whole ? 1 : ranks);
      row.sent_bytes += sent_bytes(transfer, ranks);
    }
  }
  std::vector<CollectiveRow> list;
  for (const auto& [kind, row] : rows) list.push_back(row);
  return list;
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

Scaling predict_scaling(const LoadWithMicroBatches& load, std::int64_t configured_micro_batches,
                        PluginHost& host, const ScalingOptions& options) {
  Scaling scaling;
  scaling.options = options;
  for (int nodes = 1; nodes <= options.nodes; ++nodes) {
    const Interconnect net = net_of(options, nodes);
    ScalingRow row;
    row.nodes = nodes;
    row.micro_batches = micro_batches_for(configured_micro_batches, net.ranks());
    std::optional<LoadedConfig> loaded;
    std::unique_ptr<StepRehearsal> rehearsal;
    try {
      loaded = load(row.micro_batches);
      rehearsal = std::make_unique<StepRehearsal>(*loaded, host, net.ranks(), 0);
    } catch (const Error& error) {
      if (nodes == 1) throw;
      row.impossible = error.what();
      for (PhaseScaling& phase : scaling.phases) add_row(phase, row);
      continue;
    }
    const RunConfig& config = rehearsal->config();
    scaling.tokens_per_step = config.train.tokens_per_step;
    scaling.phases.resize(config.phases.size());
    for (std::size_t phase = 0; phase < config.phases.size(); ++phase) {
      const RehearsedStep step = rehearsal->step(phase);
      const EventCost cost(*rehearsal, rehearsal->segment_tokens(phase), options.card);
      row.time = timeline_of(step, cost, net);
      row.tokens_per_second = static_cast<double>(scaling.tokens_per_step) / row.time.step_seconds;
      scaling.phases[phase].name = config.phases[phase].name;
      add_row(scaling.phases[phase], row);
      if (nodes == options.nodes) scaling.phases[phase].collectives = collectives_of(step, net.ranks());
    }
  }
  return scaling;
}

}  // namespace mulligan
