#include "tests/support/model_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "framework/graph/passes.h"
#include "framework/model/rope.h"

namespace mulligan {
namespace {

// A copy of `value` that outlives the run.
void keep(Graph& graph, Value value, const std::string& name) {
  graph.call("cast", {value, graph.external(name, graph.type(value).as(MLG_F32))});
}

// The mean of the plain cross entropy over all positions, with its backward rule.
void attach_cross_entropy(Tape& tape, Value logits, Value targets) {
  Graph& graph = tape.graph();
  const TensorType per_token(MLG_F32, {graph.type(targets).dims[0]});
  const Value loss = graph.external("out/token_loss", per_token);
  const Value lse = graph.scratch(per_token);
  graph.call("cross_entropy_fwd", {logits, targets, loss, lse});
  tape.record({loss}, {logits}, [=](Backward& b) {
    b.graph().call("cross_entropy_bwd",
                   {logits, targets, lse, b.of(loss), b.into_storage_of(logits, logits).value});
  });
  if (tape.differentiating()) tape.backward(loss, graph.external("in/loss_weight", per_token));
}

}  // namespace

ModelRunner::ModelRunner(Backend& backend, const ModelConfig& model, std::int64_t tokens,
                         const Options& options)
    : backend_(backend),
      store_(backend),
      arena_(backend),
      layouts_(parameter_layouts(model, options.compute)) {
  build(model, tokens, options);
}

void ModelRunner::build(const ModelConfig& model, std::int64_t tokens, const Options& options) {
  Graph graph;
  Tape tape(graph, options.gradients, FusedKernels(backend_));
  const TensorType per_token(MLG_I32, {tokens});
  const std::int64_t positions = options.row_length == 0 ? tokens : options.row_length;
  const TensorType table(MLG_F32, {positions, model.rope.dims / 2});
  const ForwardInputs inputs{
      graph.external("in/tokens", per_token),
      graph.external("in/cu_seqlens", TensorType(MLG_I32, {static_cast<std::int64_t>(options.segments)})),
      graph.external("in/cos", table), graph.external("in/sin", table)};
  ForwardOptions forward;
  forward.layer_order = options.layer_order;
  forward.row_length = positions;
  if (options.keep_points) {
    forward.point = [&](std::string_view name, std::int64_t slot, Value value) {
      points_.push_back(slot < 0 ? std::string(name) : fmt::format("layers.{}.{}", slot, name));
      keep(graph, value, "point/" + points_.back());
    };
  }
  const ParameterValues parameters(tape, layouts_, options.gradients);
  const Value raw = build_forward(tape, model, parameters, inputs, forward);
  keep(graph, raw, "out/pre_logits");
  const Value logits = transform_head(tape, model, parameters, raw, options.head);
  keep(graph, logits, "out/logits");
  attach_cross_entropy(tape, logits, graph.external("in/targets", per_token));

  fuse_calls(graph, tape.fused());

  Graph copies;
  build_refresh_copies(copies, layouts_);
  for (const ParameterLayout& layout : layouts_) {  // also those that this layer order does not touch
    store_.create(master_name(layout.spec.name), layout.spec.type);
    store_.create(gradient_name(layout.spec.name), layout.spec.type);
  }
  store_.create_externals(graph);
  store_.create_externals(copies);
  program_ = std::make_unique<Program>(backend_, std::move(graph), "model under test");
  refresh_ = std::make_unique<Program>(backend_, std::move(copies), "refresh");
  arena_.bind({program_.get(), refresh_.get()}, store_);
  const RopeTables rope = rope_tables(model, positions);
  set_rope(rope.cos, rope.sin);
  if (options.gradients) {
    const float weight = options.reduction == LossReduction::sum ? 1.0F : 1.0F / static_cast<float>(tokens);
    store_.upload("in/loss_weight", std::vector<float>(static_cast<std::size_t>(tokens), weight));
  }
}

void ModelRunner::set_parameter(const std::string& name, const std::vector<float>& values) {
  store_.upload(master_name(name), values);
}

void ModelRunner::set_rope(const std::vector<float>& cos, const std::vector<float>& sin) {
  store_.upload("in/cos", cos);
  store_.upload("in/sin", sin);
}

void ModelRunner::run(const std::vector<std::int32_t>& tokens, const std::vector<std::int32_t>& targets,
                      const std::vector<std::int32_t>& cu_seqlens) {
  store_.upload("in/tokens", tokens);
  store_.upload("in/targets", targets);
  store_.upload("in/cu_seqlens", cu_seqlens);
  for (const std::string& name : store_.names()) {
    if (name.starts_with("gradient/")) store_.zero(name);
  }
  refresh_->run();
  program_->run();
}

std::vector<float> ModelRunner::gradient(const std::string& name) const {
  return store_.download_as<float>(gradient_name(name));
}

std::vector<float> ModelRunner::point(const std::string& name) const {
  return store_.download_as<float>("point/" + name);
}

std::int64_t ModelRunner::calls(std::string_view kernel) const {
  return std::ranges::count(program_->graph().calls(), kernel, &Call::kernel);
}

double ModelRunner::mean_loss() const {
  const std::vector<float> losses = token_loss();
  return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
}

}  // namespace mulligan
