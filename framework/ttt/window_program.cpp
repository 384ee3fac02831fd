#include "framework/ttt/window_program.h"

#include <fmt/format.h>
#include <algorithm>

#include "framework/graph/passes.h"
#include "framework/model/elements/stages.h"
#include "framework/model/forward.h"
#include "framework/model/rope.h"
#include "kernels/cross_entropy/op.h"

namespace mulligan {
namespace {

constexpr const char* rope_cos = "ttt/rope_cos";
constexpr const char* rope_sin = "ttt/rope_sin";

ForwardInputs declare_inputs(Graph& graph, const std::string& prefix, const ModelConfig& model,
                             const WindowShape& shape, std::int64_t positions) {
  const TensorType table(MLG_F32, {positions, model.rope.dims / 2});
  ForwardInputs inputs;
  inputs.tokens = graph.external(prefix + "/tokens", TensorType(MLG_I32, {shape.tokens()}));
  inputs.cu_seqlens = graph.external(prefix + "/cu_seqlens", TensorType(MLG_I32, {shape.documents + 1}));
  if (model.rope.dims > 0) {
    inputs.rope_cos = graph.external(rope_cos, table);
    inputs.rope_sin = graph.external(rope_sin, table);
  }
  return inputs;
}

}  // namespace

WindowProgram::WindowProgram(const BaseModel& model, const TttPlugin* adapters,
                             const std::string& adapter_prefix, const WindowShape& shape,
                             std::int64_t rotary_positions, GradientSink sink, std::int64_t adapter_documents,
                             int proposals)
    : store_(model.store),
      shape_(shape),
      prefix_(fmt::format("ttt/window/{}x{}x{}{}", shape.documents, shape.context, shape.scored,
                          adapters ? "" : "/plain")) {
  if (adapters) {
    const std::int64_t all = adapter_documents > 0 ? adapter_documents : shape.documents;
    taps_ = std::make_unique<AdapterTaps>(*adapters, adapter_prefix, all, shape.documents, model.compute,
                                          std::move(sink));
  }
  Graph graph;
  Tape tape(graph, adapters != nullptr, FusedKernels(store_.backend()));
  const ForwardInputs inputs = declare_inputs(graph, prefix_, model.config, shape, rotary_positions);
  const Value targets = graph.external(prefix_ + "/targets", TensorType(MLG_I32, {shape.positions()}));
  ForwardOptions options;
  options.layer_order = model.layer_order;
  options.row_length = shape.context;
  options.taps = taps_.get();
  // Only scored positions need logits: with long windows that saves almost the whole head.
  options.head_rows = graph.external(prefix_ + "/positions", TensorType(MLG_I32, {shape.positions()}));
  const ParameterValues parameters(tape, model.layouts, false);
  const Value raw = build_forward(tape, model.config, parameters, inputs, options);
  const Value logits = transform_head(tape, model.config, parameters, raw, HeadUse::scoring);
  const TensorType per_token(MLG_F32, {shape.positions()});
  const Value losses = graph.external(prefix_ + "/token_loss", per_token);
  // Before the loss, whose gradient takes the logits' place.
  for (int number = 0; number < proposals; ++number) {
    const Value tokens =
        graph.external(proposed("proposal", number), TensorType(MLG_I32, {shape.positions()}));
    graph.call("cross_entropy_fwd",
               {logits, tokens, graph.external(proposed("proposed_loss", number), per_token),
                graph.scratch(per_token, "proposal_lse")});
  }
  ops::cross_entropy(tape, logits, targets, losses, graph.external(prefix_ + "/normaliser", per_token));
  split_ = graph.calls().size();
  if (adapters) tape.backward(losses, graph.external(prefix_ + "/weights", per_token));
  split_ = fuse_calls(graph, tape.fused(), split_);

  store_.create_externals(graph);
  program_ = std::make_unique<Program>(store_.backend(), std::move(graph), prefix_);
  std::vector<std::int32_t> boundaries;
  for (std::int64_t row = 0; row <= shape.documents; ++row) {
    boundaries.push_back(static_cast<std::int32_t>(row * shape.context));
  }
  store_.upload(prefix_ + "/cu_seqlens", boundaries);
}

const std::vector<std::shared_ptr<const AdapterTensor>>& WindowProgram::adapters() const {
  static const std::vector<std::shared_ptr<const AdapterTensor>> none;
  return taps_ ? taps_->tensors() : none;
}

void WindowProgram::set_inputs(std::span<const std::int32_t> tokens, std::span<const std::int32_t> positions,
                               std::span<const std::int32_t> targets) {
  store_.upload(prefix_ + "/tokens", std::as_bytes(tokens));
  store_.upload(prefix_ + "/positions", std::as_bytes(positions));
  store_.upload(prefix_ + "/targets", std::as_bytes(targets));
}

std::string WindowProgram::proposed(const char* what, int number) const {
  return fmt::format("{}/{}{}", prefix_, what, number);
}

void WindowProgram::set_proposal(int number, std::span<const std::int32_t> tokens) {
  store_.upload(proposed("proposal", number), std::as_bytes(tokens));
}

void WindowProgram::download_proposed_losses(int number, std::span<float> losses) const {
  store_.download(proposed("proposed_loss", number), std::as_writable_bytes(losses));
}

void WindowProgram::set_weights(std::span<const float> weights) {
  store_.upload(prefix_ + "/weights", std::as_bytes(weights));
}

void WindowProgram::download_losses(std::span<float> losses) const {
  store_.download(prefix_ + "/token_loss", std::as_writable_bytes(losses));
}

void WindowProgram::download_normalisers(std::span<float> values) const {
  store_.download(prefix_ + "/normaliser", std::as_writable_bytes(values));
}

void upload_window_rope(const BaseModel& model, std::int64_t positions) {
  // A rank without documents has no program that reads them.
  if (model.config.rope.dims == 0 || !model.store.contains(rope_cos)) return;
  const RopeTables tables = rope_tables(model.config, positions);
  model.store.upload(rope_cos, tables.cos);
  model.store.upload(rope_sin, tables.sin);
}

}  // namespace mulligan
