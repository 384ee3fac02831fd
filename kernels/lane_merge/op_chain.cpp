#include "kernels/lane_merge/op_chain.h"

#include "framework/graph/row_rules.h"

namespace mulligan::ops {
namespace {

const KernelRules lane_chain_rules{
    {"lane_chain_fwd", RowRule::row_wise, "iiiippppippipoooo", "resid of both lanes and norms", "", true},
    {"lane_chain_bwd", RowRule::mixing, "", "", "", true},
    {"lane_mean_norm_fwd", RowRule::row_wise, "iiiippppo", "norm of the lanes' mean", "", true},
    {"lane_mean_norm_bwd", RowRule::mixing, "", "", "", true}};

std::vector<Tape::Gradient> gradients_of(const LaneBlock& b) {
  return {{b.lanes.attention, "dlane0"}, {b.lanes.mlp, "dlane1"},  {b.a, "da"},        {b.m, "dm"},
          {b.parameters.attn_scale},     {b.parameters.mlp_scale}, {b.parameters.rho}, {b.parameters.post}};
}

std::vector<Value> inputs_of(const std::vector<Tape::Gradient>& gradients) {
  std::vector<Value> inputs;
  for (const Tape::Gradient& gradient : gradients) inputs.push_back(gradient.input);
  return inputs;
}

}  // namespace

void lane_chain(Tape& tape, const LaneBlock& block, const LaneSkip& skip, Value x0, Value mix, double scale,
                double eps, const NextLanes& next) {
  std::vector<Tape::Gradient> gradients = gradients_of(block);
  gradients.insert(gradients.end(), {{skip.skip, "dskip"}, {skip.weight}, {skip.gate}, {x0, "dx0"}, {mix}});
  tape.call("lane_chain", inputs_of(gradients),
            {next.lanes.attention, next.lanes.mlp, next.attention_norm, next.mlp_norm},
            {{"scale", scale}, {"eps", eps}}, gradients);
}

void lane_mean_norm(Tape& tape, const LaneBlock& block, double scale, double eps, Value norm) {
  const std::vector<Tape::Gradient> gradients = gradients_of(block);
  tape.call("lane_mean_norm", inputs_of(gradients), {norm}, {{"scale", scale}, {"eps", eps}}, gradients);
}

}  // namespace mulligan::ops
