#include "framework/ttt/adapter_taps.h"

#include <algorithm>
#include <stdexcept>

#include "framework/core/error.h"

namespace mulligan {

const char* tap_kind_name(TapKind kind) {
  switch (kind) {
    case TapKind::q:
      return "q";
    case TapKind::k:
      return "k";
    case TapKind::v:
      return "v";
    case TapKind::attention_output:
      return "attention_output";
    case TapKind::mlp_up:
      return "mlp_up";
    case TapKind::mlp_down:
      return "mlp_down";
    case TapKind::head:
      return "head";
  }
  throw std::logic_error("tap_kind_name: no such kind");
}

namespace {

std::string tap_name(const TapSite& site) {
  if (site.slot < 0) return tap_kind_name(site.kind);
  return fmt::format("{}/{}", tap_kind_name(site.kind), site.slot);
}

// The features per row of a value that holds `rows` of them.
std::int64_t features(const Graph& graph, Value value, std::int64_t rows) {
  return graph.type(value).elements() / rows;
}

}  // namespace

struct AdapterTaps::TapState {
  explicit TapState(const std::string& name) : recorder(name) {}

  mlg_tap tap{};
  mlg_tap_forward forward{};
  std::vector<std::shared_ptr<const AdapterTensor>> adapters;
  TapRecorder recorder;
};

AdapterTaps::AdapterTaps(const TttPlugin& plugin, std::string prefix, std::int64_t documents, DType compute,
                         GradientSink sink)
    : plugin_(plugin),
      prefix_(std::move(prefix)),
      documents_(documents),
      compute_(compute),
      sink_(std::move(sink)) {}

AdapterTensor AdapterTaps::make_tensor(const TapSite& site, const mlg_adapter& adapter) const {
  AdapterTensor tensor;
  tensor.group = adapter.name;
  tensor.name = fmt::format("{}/{}", tap_name(site), adapter.name);
  tensor.kind = site.kind;
  tensor.slot = site.slot;
  tensor.type = TensorType::from_c(adapter.shape);
  tensor.uniform = adapter.start == MLG_START_UNIFORM;
  tensor.keep = adapter.keep != 0;
  tensor.bound = adapter.bound;
  tensor.master = fmt::format("{}/adapter/{}", prefix_, tensor.name);
  if (compute_ != MLG_F32) tensor.copy = fmt::format("{}/adapter_copy/{}", prefix_, tensor.name);
  if (tensor.uniform) tensor.start = fmt::format("{}/adapter_start/{}", prefix_, tensor.name);
  if (tensor.type.dtype != MLG_F32 || tensor.type.rank < 2 || tensor.type.dims[0] != documents_) {
    throw run_error("{}: the adapter '{}' is {}, but must be f32 with {} documents as its first extent",
                    plugin_.plugin().description(), tensor.name, tensor.type.text(), documents_);
  }
  return tensor;
}

Value AdapterTaps::at(Tape& tape, const TapSite& site) {
  Graph& graph = tape.graph();
  const auto state = std::make_shared<TapState>(tap_name(site));
  // Every site's input has one row per token: [T, inputs].
  const std::int64_t rows = graph.type(site.block_input).dims[0];
  state->tap = {tap_kind_name(site.kind),
                static_cast<std::int32_t>(site.slot),
                static_cast<std::int32_t>(site.layer),
                documents_,
                rows / documents_,
                features(graph, site.block_input, rows),
                features(graph, site.output, rows)};
  const std::vector<mlg_adapter> declared = plugin_.declare(state->tap);
  if (declared.empty()) return site.output;

  mlg_tap_forward& forward = state->forward;
  forward.block_input = site.block_input.id;
  forward.output = site.output.id;
  std::vector<Value> handed = {site.block_input, site.output};
  std::vector<Value> inputs = {site.block_input};
  for (std::size_t i = 0; i < declared.size(); ++i) {
    const auto tensor = std::make_shared<const AdapterTensor>(make_tensor(site, declared[i]));
    const Value read = graph.external(tensor->read_name(), tensor->type.as(compute_));
    // The plugin writes the gradient itself; watching tells the tape that the output depends on a trained
    // tensor.
    if (tape.differentiating()) tape.watch(read, graph.scratch(tensor->type, "unread"));
    forward.adapters[i] = read.id;
    handed.push_back(read);
    inputs.push_back(read);
    state->adapters.push_back(tensor);
    tensors_.push_back(tensor);
  }
  states_.push_back(state);
  state->recorder.allow(handed);
  plugin_.record_forward(state->recorder.open(graph), state->tap, forward);
  state->recorder.close();
  // The adapter works in place: its rule runs before the layer's own, when the gradient of the sum is
  // complete.
  tape.record({site.output}, std::move(inputs),
              [this, state, site](Backward& backward) { record_backward(*state, site, backward); });
  return site.output;
}

void AdapterTaps::record_backward(TapState& state, const TapSite& site, Backward& backward) {
  Graph& graph = backward.graph();
  const Backward::Target input = backward.into(site.block_input);
  mlg_tap_backward call{};
  call.forward = state.forward;
  call.output_gradient = backward.of(site.output).id;
  call.input_gradient = input.value.id;
  call.accumulate = input.accumulate;
  std::vector<Gradient> gradients;
  std::vector<Value> handed = {backward.of(site.output), input.value};
  for (std::size_t i = 0; i < state.adapters.size(); ++i) {
    const Value gradient = graph.scratch(state.adapters[i]->type, "gradient of " + state.adapters[i]->name);
    call.gradients[i] = gradient.id;
    gradients.push_back({state.adapters[i].get(), gradient});
    handed.push_back(gradient);
  }
  state.recorder.allow(handed);
  plugin_.record_backward(state.recorder.open(graph), state.tap, call);
  state.recorder.close();
  sink_(graph, gradients);
}

}  // namespace mulligan
