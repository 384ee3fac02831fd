#include "framework/check/adapter_probe.h"

namespace mulligan {
namespace {

std::string gradient_name_of(std::size_t adapter) {
  return fmt::format("gradient/{}", adapter);
}

// A value computed from the leaf `name`, whose gradient goes to the external "gradient of NAME".
Value computed(Tape& tape, const std::string& name, const TensorType& type) {
  Graph& graph = tape.graph();
  const Value leaf = graph.external(name, type), value = graph.scratch(type, name);
  tape.watch(leaf, graph.external("gradient of " + name, type));
  graph.call("cast", {leaf, value});
  tape.record({value}, {leaf}, [=](Backward& backward) {
    const Backward::Target target = backward.into(leaf);
    backward.graph().call("cast", {backward.of(value), target.value});
  });
  return value;
}

}  // namespace

NamedResults AdapterOutputs::named(TapKind kind) const {
  const std::string at = fmt::format(" at tap '{}'", tap_kind_name(kind));
  NamedResults all = {{"the output" + at, output}};
  for (std::size_t i = 0; i < adapter_gradients.size(); ++i)
    all.emplace_back(fmt::format("gradients[{}]{}", i, at), adapter_gradients[i]);
  all.emplace_back("input_gradient" + at, input_gradient);
  all.emplace_back("output_gradient" + at, layer_gradient);
  return all;
}

AdapterProbe::AdapterProbe(Backend& backend, const TttPlugin& plugin, const AdapterShape& shape)
    : shape_(shape),
      taps_(plugin, "check", shape.documents, shape.documents, MLG_F32,
            [](Graph& graph, std::span<const AdapterTaps::Gradient> gradients) {
              for (std::size_t i = 0; i < gradients.size(); ++i) {
                graph.call("cast", {gradients[i].value,
                                    graph.external(gradient_name_of(i), gradients[i].adapter->type)});
              }
            }),
      run_(backend, record(), "check of the adapters") {}

Graph AdapterProbe::record() {
  Graph graph;
  Tape tape(graph, true);
  const std::int64_t rows = shape_.documents * shape_.tokens;
  const TensorType output_type(MLG_F32, {rows, shape_.outputs});
  TapSite site;
  site.kind = shape_.kind;
  if (shape_.kind != TapKind::head) site.slot = site.layer = 0;
  site.block_input = computed(tape, "block_input", TensorType(MLG_F32, {rows, shape_.inputs}));
  site.layer_input = site.block_input;
  site.output = computed(tape, "layer_output", output_type);
  const Value output = taps_.at(tape, site);
  graph.call("cast", {output, graph.external("output", output_type)});
  // Adapters may write the gradient that they get, so it is a copy.
  const Value gradient = graph.scratch(output_type, "output gradient");
  graph.call("cast", {graph.external("output_gradient", output_type), gradient});
  tape.backward(output, gradient);
  return graph;
}

AdapterInputs AdapterProbe::sample_inputs() const {
  const auto rows = static_cast<std::size_t>(shape_.documents * shape_.tokens);
  AdapterInputs inputs;
  inputs.block_input = sample(rows * static_cast<std::size_t>(shape_.inputs), 1);
  inputs.layer_output = sample(rows * static_cast<std::size_t>(shape_.outputs), 2);
  inputs.output_gradient = sample(rows * static_cast<std::size_t>(shape_.outputs), 3);
  for (std::size_t i = 0; i < adapters(); ++i) {
    const auto count = static_cast<std::size_t>(taps_.tensors()[i]->type.elements());
    inputs.adapters.push_back(sample(count, 10 + static_cast<unsigned>(i), 0.3f));
  }
  return inputs;
}

void AdapterProbe::set(const AdapterInputs& inputs) {
  run_.set("block_input", inputs.block_input);
  run_.set("layer_output", inputs.layer_output);
  run_.set("output_gradient", inputs.output_gradient);
  for (std::size_t i = 0; i < adapters(); ++i) run_.set(taps_.tensors()[i]->read_name(), inputs.adapters[i]);
}

AdapterOutputs AdapterProbe::run(std::uint8_t poison) {
  run_.run(poison);
  AdapterOutputs outputs;
  outputs.output = run_.floats("output");
  outputs.input_gradient = run_.floats("gradient of block_input");
  outputs.layer_gradient = run_.floats("gradient of layer_output");
  for (std::size_t i = 0; i < adapters(); ++i)
    outputs.adapter_gradients.push_back(run_.floats(gradient_name_of(i)));
  return outputs;
}

std::string adapter_outputs_problem(Backend& backend, const TttPlugin& plugin, const AdapterShape& shape) {
  AdapterProbe probe(backend, plugin, shape);
  if (probe.adapters() == 0) return {};
  probe.set(probe.sample_inputs());
  const AdapterOutputs after_nan = probe.run(poison_nan);
  return written_problem(after_nan.named(shape.kind), probe.run(poison_number).named(shape.kind));
}

}  // namespace mulligan
