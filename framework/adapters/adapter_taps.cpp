#include "framework/adapters/adapter_taps.h"

#include <algorithm>

#include "framework/adapters/row_guard.h"
#include "framework/core/error.h"
#include "framework/graph/graph_recorder.h"

namespace mulligan {

const char* tap_kind_name(TapKind kind) {
  constexpr const char* names[] = {"q", "k", "v", "attention_output", "mlp_up", "mlp_down", "head"};
  return names[static_cast<int>(kind)];
}

namespace {

std::string tap_name(const TapSite& site) {
  if (site.slot < 0) return tap_kind_name(site.kind);
  return fmt::format("{}/{}", tap_kind_name(site.kind), site.slot);
}

// Whether a call from number `first` on takes `value` or a part of it.
bool mentioned(const Graph& graph, Value value, std::size_t first) {
  const auto calls = graph.calls().subspan(first);
  return std::ranges::any_of(calls, [&](const Call& call) {
    return std::ranges::any_of(call.arguments, [&](Value argument) {
      return argument && graph.root(argument) == graph.root(value);
    });
  });
}

}  // namespace

// The recorder for test-time-training plugins. It knows only the values of one tap. It stands between a plugin and the Graph:
// launches may name the allowed values and the plugin's own values. Anything else is refused with a sentence: token ids, targets,
// losses, other taps, persistent states, and every call outside of open() ... close(). Must live as long as a plugin could call it.
class TapRecorder final : public PluginRecorder {
 public:
  explicit TapRecorder(const std::string& tap) : PluginRecorder("the tap " + tap, "adapter") {}

  // With `rows` every view and launch must keep the rows of tokens apart (a recording that scores).
  const mlg_recorder& open(Graph& graph, RowGuard* rows = nullptr) {
    graph_ = &graph;
    rows_ = rows;
    return *table();
  }
  void close() { graph_ = nullptr; }

 private:
  Graph& graph() override {
    if (graph_) return *graph_;
    throw run_error("{}: the recording is over; a plugin may record only while it is asked to", name_);
  }
  Value state(const char*, const TensorType&, bool) override {
    throw run_error("{}: a test-time-training plugin keeps nothing but its declared adapters", name_);
  }
  void check_view(Value value, std::int64_t offset, const TensorType& type) override {
    if (rows_) rows_->view(graph(), value, offset, type);
  }
  void record(Call call) override {
    if (rows_) rows_->call(graph(), call);
    graph().call(call.kernel, std::move(call.arguments), std::move(call.attributes));
  }

  Graph* graph_ = nullptr;  // null: closed
  RowGuard* rows_ = nullptr;
};

struct AdapterTaps::TapState {
  explicit TapState(const std::string& name) : recorder(name) {}

  mlg_tap tap{};
  mlg_tap_forward forward{};
  std::vector<std::shared_ptr<const AdapterTensor>> adapters;
  TapRecorder recorder;
};

AdapterTaps::AdapterTaps(const TttPlugin& plugin, std::string prefix, std::int64_t documents,
                         std::int64_t active, DType compute, GradientSink sink)
    : plugin_(plugin),
      prefix_(std::move(prefix)),
      documents_(documents),
      active_(active),
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
  tensor.bound = adapter.bound;
  tensor.master = fmt::format("{}/adapter/{}", prefix_, tensor.name);
  if (compute_ != MLG_F32) tensor.copy = fmt::format("{}/adapter_copy/{}", prefix_, tensor.name);
  if (tensor.uniform) tensor.start = fmt::format("{}/adapter_start/{}", prefix_, tensor.name);
  if (tensor.type.dtype != MLG_F32 || tensor.type.rank < 2 || tensor.type.dims[0] != active_) {
    throw run_error("{}: the adapter '{}' is {}, but must be f32 with {} documents as its first extent",
                    plugin_.plugin().description(), tensor.name, tensor.type.text(), active_);
  }
  tensor.type.dims[0] = documents_;
  return tensor;
}

// The last `active` documents of `whole`, which has the adapter's shape.
Value AdapterTaps::active_part(Graph& graph, const AdapterTensor& tensor, Value whole) const {
  if (active_ == documents_) return whole;
  TensorType part = tensor.type.as(graph.type(whole).dtype);
  part.dims[0] = active_;
  return graph.view(whole, tensor.type.elements() - part.elements(), part);
}

// A gradient whose active part the plugin will write; what belongs to finished documents is zero.
Value AdapterTaps::make_gradient(Graph& graph, const AdapterTensor& tensor) const {
  const Value gradient = graph.scratch(tensor.type, "gradient of " + tensor.name);
  if (active_ == documents_) return gradient;
  TensorType finished = tensor.type;
  finished.dims[0] = documents_ - active_;
  const Value any = graph.view(graph.external(tensor.master, tensor.type), 0, finished);
  graph.call("axpby", {any, Value{}, graph.view(gradient, 0, finished)},
             {{"alpha", 0.0}, {"beta", 0.0}, {"accumulate_y", 0.0}});
  return gradient;
}

mlg_tap AdapterTaps::tap_of(const Graph& graph, const TapSite& site, const TensorType& output) const {
  // Every site's input has one row per token: [T, inputs].
  const TensorType& input = graph.type(site.block_input);
  const std::int64_t rows = input.dims[0];
  return {tap_kind_name(site.kind),
          static_cast<std::int32_t>(site.slot),
          static_cast<std::int32_t>(site.layer),
          active_,
          rows / active_,
          input.elements() / rows,
          output.elements() / rows};
}

bool AdapterTaps::changes(const Graph& graph, const TapSite& site, const TensorType& output) const {
  return !plugin_.declare(tap_of(graph, site, output)).empty();
}

Value AdapterTaps::at(Tape& tape, const TapSite& site) {
  if (!site.output) return site.output;  // computed together with others, as changes() allowed
  Graph& graph = tape.graph();
  const auto state = std::make_shared<TapState>(tap_name(site));
  state->tap = tap_of(graph, site, graph.type(site.output));
  const std::int64_t rows = graph.type(site.block_input).dims[0];
  const std::vector<mlg_adapter> declared = plugin_.declare(state->tap);
  if (declared.empty()) return site.output;

  mlg_tap_forward& forward = state->forward;
  forward.block_input = site.block_input.id;
  forward.output = site.output.id;
  std::vector<Value> handed = {site.block_input, site.output};
  std::vector<Value> inputs = {site.block_input};
  for (std::size_t i = 0; i < declared.size(); ++i) {
    const auto tensor = std::make_shared<const AdapterTensor>(make_tensor(site, declared[i]));
    const Value all = graph.external(tensor->read_name(), tensor->type.as(compute_));
    const Value read = active_part(graph, *tensor, all);
    // The plugin writes the gradient itself; watching tells the tape that the output depends on
    // a trained tensor.
    if (tape.differentiating()) tape.watch(all, graph.scratch(tensor->type, "unread"));
    forward.adapters[i] = read.id;
    handed.push_back(read);
    inputs.push_back(read);
    state->adapters.push_back(tensor);
    tensors_.push_back(tensor);
  }
  states_.push_back(state);
  state->recorder.restrict_to(handed);
  RowGuard guard(tap_name(site), active_, rows / active_);
  guard.hand_tokens(graph, site.block_input);
  guard.hand_tokens(graph, site.output);
  for (std::size_t i = 2; i < handed.size(); ++i) guard.hand_adapter(graph, handed[i]);
  plugin_.record_forward(state->recorder.open(graph, &guard), state->tap, forward);
  state->recorder.close();
  unknown_kernels_ = unknown_kernels_ || guard.unknown_kernels();
  // The adapter works in place: its rule runs before the layer's own, when the gradient of the
  // sum is complete.
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
    const Value gradient = make_gradient(graph, *state.adapters[i]);
    const Value written = active_part(graph, *state.adapters[i], gradient);
    call.gradients[i] = written.id;
    gradients.push_back({state.adapters[i].get(), gradient});
    handed.push_back(written);
  }
  state.recorder.restrict_to(handed);
  const std::size_t first = graph.calls().size();
  plugin_.record_backward(state.recorder.open(graph), state.tap, call);
  state.recorder.close();
  // Adapters that do not read block_input have nothing to say of its gradient, but the layer's own rule adds
  // to what is there.
  if (input.value && input.accumulate == 0 && !mentioned(graph, input.value, first)) {
    graph.call("axpby", {site.block_input, Value{}, input.value},
               {{"alpha", 0.0}, {"beta", 0.0}, {"accumulate_y", 0.0}});
  }
  sink_(graph, gradients);
}

}  // namespace mulligan
