#include "framework/core/printable.h"
#include "framework/ranks/communicator.h"
#include "tools/cost/cost_text.h"
#include "tools/cost/scaling.h"

namespace mulligan {
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
