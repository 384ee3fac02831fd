#include <fmt/format.h>

#include "framework/core/printable.h"
#include "framework/ranks/transfer_checks.h"
#include "tools/cost/scaling.h"

namespace mulligan {
namespace {

void add_row(std::string& text, const ScalingRow& row, int gpus_per_node) {
  text += fmt::format("  {:>5} {:>6} {:>8}", row.nodes, row.nodes * gpus_per_node, row.micro_batches);
  if (!row.impossible.empty()) {
    text += fmt::format("   none: {}\n", row.impossible);
    return;
  }
  text += fmt::format(" {:>10.2f} {:>10.2f} {:>10.2f} {:>9.2f} {:>13} {:>7.0f}%\n",
                      1e3 * row.time.compute_seconds, 1e3 * row.time.communication_seconds,
                      1e3 * row.time.exposed_seconds, 1e3 * row.time.step_seconds,
                      grouped(static_cast<std::int64_t>(row.tokens_per_second)), 100 * row.gain);
}

void add_phase(std::string& text, const PhaseScaling& phase, const Interconnect& net) {
  text += fmt::format("\nphase {}:\n", phase.name);
  text += fmt::format("  {:>5} {:>6} {:>8} {:>10} {:>10} {:>10} {:>9} {:>13} {:>8}\n", "nodes", "ranks",
                      "micro-b.", "compute ms", "network ms", "exposed ms", "step ms", "tokens/s", "gain");
  for (const ScalingRow& row : phase.rows) add_row(text, row, net.ranks_per_node);
  if (net.nodes > 1) {
    text += phase.stops_paying == 0
                ? fmt::format("  up to {} nodes each adds at least half of what one makes alone\n", net.nodes)
                : fmt::format(
                      "  scaling stops paying at {} nodes: the last adds less than half of what one makes "
                      "alone\n",
                      phase.stops_paying);
  }
  if (phase.collectives.empty()) return;
  text += fmt::format("  transfers of a step on {} nodes:\n", net.nodes);
  for (const auto& [kind, row] : phase.collectives) {
    text += fmt::format("    {:<15} {:>4} tensors of {:>9.3f} MB; each rank sends {:>9.3f} MB\n",
                        collective_name(kind), row.transfers, row.tensor_bytes / 1e6, row.sent_bytes / 1e6);
  }
}

}  // namespace

std::string format_scaling(const Scaling& scaling, const ScalingOptions& options) {
  const Interconnect& net = options.net;
  std::string text = fmt::format(
      "predicted, not measured: steps of {} tokens (whole segments) "
      "on nodes of {} x {}; rings at {:.0f} GB/s within a node",
      grouped(scaling.tokens_per_step), net.ranks_per_node, options.card.description,
      net.node_bytes_per_second / 1e9);
  text += net.nodes == 1 ? std::string("\n")
                         : fmt::format(", and over {} link{} of {:.0f} Gb/s from each node to the others\n",
                                       net.links_per_node, net.links_per_node == 1 ? "" : "s",
                                       net.link_bytes_per_second * 8 / 1e9);
  for (const PhaseScaling& phase : scaling.phases) add_phase(text, phase, net);
  return text;
}

}  // namespace mulligan
