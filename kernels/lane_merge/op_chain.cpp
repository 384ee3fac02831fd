#include "kernels/lane_merge/op_chain.h"

#include "framework/graph/row_rules.h"

namespace mulligan::ops {
namespace {

constexpr const char* chain_forward = "lane_chain_fwd";
constexpr const char* chain_backward = "lane_chain_bwd";
constexpr const char* mean_forward = "lane_mean_norm_fwd";
constexpr const char* mean_backward = "lane_mean_norm_bwd";

const KernelRules lane_chain_rules{
    {chain_forward, RowRule::row_wise, "iiiippppippipoooo", "resid of both lanes and norms", "", true},
    {chain_backward, RowRule::mixing, "", "", "", true},
    {mean_forward, RowRule::row_wise, "iiiippppo", "norm of the lanes' mean", "", true},
    {mean_backward, RowRule::mixing, "", "", "", true}};

std::vector<Value> inputs_of(const LaneBlock& b) {
  return {b.lanes.attention, b.lanes.mlp,      b.a, b.m, b.parameters.attn_scale, b.parameters.mlp_scale,
          b.parameters.rho,  b.parameters.post};
}

void append(std::vector<Value>& to, const std::vector<Value>& values) {
  to.insert(to.end(), values.begin(), values.end());
}

// Adds the gradients of inputs_of() to `arguments`, and the activations' accumulate flags to `attributes`.
void append_gradients(Backward& b, const LaneBlock& block, std::vector<Value>& arguments,
                      std::vector<Attribute>& attributes) {
  const auto activation = [&](Value input, const char* flag) {
    const Backward::Target target = b.into(input);
    arguments.push_back(target.value);
    attributes.push_back({flag, target.accumulate});
  };
  activation(block.lanes.attention, "accumulate_dlane0");
  activation(block.lanes.mlp, "accumulate_dlane1");
  activation(block.a, "accumulate_da");
  activation(block.m, "accumulate_dm");
  const LaneParameters& p = block.parameters;
  for (const Value parameter : {p.attn_scale, p.mlp_scale, p.rho, p.post})
    arguments.push_back(b.into(parameter).value);
}

}  // namespace

void lane_chain(Tape& tape, const LaneBlock& block, const LaneSkip& skip, Value x0, Value mix, double scale,
                double eps, const NextLanes& next) {
  const std::vector<Attribute> attributes = {{"scale", scale}, {"eps", eps}};
  std::vector<Value> inputs = inputs_of(block);
  append(inputs, {skip.skip, skip.weight, skip.gate, x0, mix});
  const std::vector<Value> outputs = {next.lanes.attention, next.lanes.mlp, next.attention_norm,
                                      next.mlp_norm};
  std::vector<Value> arguments = inputs;
  append(arguments, outputs);
  tape.graph().call(chain_forward, arguments, attributes);
  tape.record(outputs, inputs, [=](Backward& b) {
    std::vector<Value> given = inputs;
    for (const Value output : outputs) given.push_back(b.of(output));
    std::vector<Attribute> flags = attributes;
    append_gradients(b, block, given, flags);
    const auto dskip = b.into(skip.skip), dx0 = b.into(x0);
    append(given,
           {dskip.value, b.into(skip.weight).value, b.into(skip.gate).value, dx0.value, b.into(mix).value});
    flags.push_back({"accumulate_dskip", dskip.accumulate});
    flags.push_back({"accumulate_dx0", dx0.accumulate});
    b.graph().call(chain_backward, given, flags);
  });
}

void lane_mean_norm(Tape& tape, const LaneBlock& block, double scale, double eps, Value norm) {
  const std::vector<Attribute> attributes = {{"scale", scale}, {"eps", eps}};
  const std::vector<Value> inputs = inputs_of(block);
  std::vector<Value> arguments = inputs;
  arguments.push_back(norm);
  tape.graph().call(mean_forward, arguments, attributes);
  tape.record({norm}, inputs, [=](Backward& b) {
    std::vector<Value> given = inputs;
    given.push_back(b.of(norm));
    std::vector<Attribute> flags = attributes;
    append_gradients(b, block, given, flags);
    b.graph().call(mean_backward, given, flags);
  });
}

}  // namespace mulligan::ops
