#include "framework/ttt/window_program.h"

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

}  // namespace

WindowProgram::WindowProgram(const BaseModel& model, const TttPlugin& adapters,
                             const std::string& adapter_prefix, const WindowShape& shape,
                             std::int64_t rotary_positions, AdapterTaps::GradientSink sink,
                             std::int64_t adapter_documents, int proposals)
    : store_(model.store),
      shape_(shape),
      prefix_(fmt::format("ttt/window/{}x{}x{}", shape.documents, shape.context, shape.scored)),
      taps_(adapters, adapter_prefix, adapter_documents > 0 ? adapter_documents : shape.documents,
            shape.documents, model.compute, std::move(sink)) {
  Graph graph;
  Tape tape(graph, true, FusedKernels(store_.backend()));
  const TensorType per_token(MLG_F32, {shape.positions()}), per_position(MLG_I32, {shape.positions()});
  ForwardInputs inputs;
  inputs.tokens = graph.external(name("tokens"), TensorType(MLG_I32, {shape.tokens()}));
  inputs.cu_seqlens = graph.external(name("cu_seqlens"), TensorType(MLG_I32, {shape.documents + 1}));
  if (model.config.rope.dims > 0) {
    const TensorType table(MLG_F32, {rotary_positions, model.config.rope.dims / 2});
    inputs.rope_cos = graph.external(rope_cos, table);
    inputs.rope_sin = graph.external(rope_sin, table);
  }
  const Value targets = graph.external(name("targets"), per_position);
  ForwardOptions options;
  options.layer_order = model.layer_order;
  options.row_length = shape.context;
  options.taps = &taps_;
  // Only scored positions need logits: with long windows that saves almost the whole head.
  options.head_rows = graph.external(name("positions"), per_position);
  const ParameterValues parameters(tape, model.layouts, false);
  const Value raw = build_forward(tape, model.config, parameters, inputs, options);
  const Value logits = transform_head(tape, model.config, parameters, raw, HeadUse::scoring);
  const Value losses = graph.external(name("token_loss"), per_token);
  // Before the loss, whose gradient takes the logits' place.
  for (int number = 0; number < proposals; ++number) {
    const Value tokens = graph.external(name(fmt::format("proposal{}", number)), per_position);
    graph.call("cross_entropy_fwd",
               {logits, tokens, graph.external(name(fmt::format("proposed_loss{}", number)), per_token),
                graph.scratch(per_token, "proposal_lse")});
  }
  ops::cross_entropy(tape, logits, targets, losses, graph.external(name("normaliser"), per_token));
  split_ = graph.calls().size();
  tape.backward(losses, graph.external(name("weights"), per_token));
  split_ = fuse_calls(graph, tape.fused(), split_);

  program_ = make_program(store_, std::move(graph), prefix_);
  std::vector<std::int32_t> boundaries;
  for (std::int64_t row = 0; row <= shape.documents; ++row)
    boundaries.push_back(static_cast<std::int32_t>(row * shape.context));
  store_.upload(name("cu_seqlens"), boundaries);
}

void WindowProgram::set_inputs(std::span<const std::int32_t> tokens, std::span<const std::int32_t> positions,
                               std::span<const std::int32_t> targets) {
  store_.upload(name("tokens"), std::as_bytes(tokens));
  store_.upload(name("positions"), std::as_bytes(positions));
  store_.upload(name("targets"), std::as_bytes(targets));
}

void WindowProgram::set_proposal(int number, std::span<const std::int32_t> tokens) {
  store_.upload(name(fmt::format("proposal{}", number)), std::as_bytes(tokens));
}

void WindowProgram::set_weights(std::span<const float> weights) {
  store_.upload(name("weights"), std::as_bytes(weights));
}

void upload_window_rope(const BaseModel& model, std::int64_t positions) {
  // A rank without documents has no program that reads them.
  if (model.config.rope.dims == 0 || !model.store.contains(rope_cos)) return;
  const RopeTables tables = rope_tables(model.config, positions);
  model.store.upload(rope_cos, tables.cos);
  model.store.upload(rope_sin, tables.sin);
}

}  // namespace mulligan
