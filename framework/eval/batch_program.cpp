#include "framework/eval/batch_program.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/graph/passes.h"
#include "framework/model/elements/stages.h"
#include "framework/model/forward.h"

namespace mulligan {

BatchProgram::BatchProgram(TensorStore& store, const ModelConfig& model,
                           const std::vector<ParameterLayout>& layouts, LayerOrderKind order,
                           const BatchShape& shape)
    : store_(store),
      shape_(shape),
      prefix_(fmt::format("rows/{}x{}{}", shape.sequences, shape.length,
                          shape.wanted == BatchShape::Wanted::one_each ? "/next" : "")),
      inputs_(prefix_, shape.sequences * shape.length),
      tokens_(static_cast<std::size_t>(shape.sequences * shape.length)),
      last_(static_cast<std::size_t>(shape.sequences)),
      logits_(static_cast<std::size_t>(shape.rows() * model.vocabulary)) {
  Graph graph;
  Tape tape(graph, false, FusedKernels(store.backend()));
  const std::int64_t tokens = shape.sequences * shape.length;
  const PackedInputs inputs = declare_packed_inputs(graph, prefix_, model, tokens, shape.length);
  ForwardOptions forward;
  forward.layer_order = order;
  forward.row_length = shape.length;
  const bool one_each = shape.wanted == BatchShape::Wanted::one_each;
  if (one_each) forward.head_rows = graph.external(prefix_ + "/last", TensorType(MLG_I32, {shape.sequences}));
  const ParameterValues parameters(tape, layouts, false);
  const Value raw = build_forward(tape, model, parameters, inputs.forward, forward);
  Value logits = transform_head(tape, model, parameters, raw, HeadUse::scoring);
  const std::int64_t rows = shape.rows();
  if (!one_each) {
    logits = graph.view(logits, (tokens - rows) * model.vocabulary,
                        TensorType(graph.type(logits).dtype, {rows, model.vocabulary}));
  }
  graph.call("cast",
             {logits, graph.external(prefix_ + "/logits", TensorType(MLG_F32, {rows, model.vocabulary}))});
  fuse_calls(graph, tape.fused());
  program_ = make_program(store, std::move(graph), prefix_);
  inputs_.upload_rope(store, model, shape.length);
  for (std::int64_t i = 0; i <= shape.sequences; ++i) {
    boundaries_.push_back(static_cast<std::int32_t>(i * shape.length));
  }
}

std::span<const float> BatchProgram::logits(std::span<const std::span<const std::int32_t>> texts) {
  std::ranges::fill(tokens_, 0);  // what follows a text is not seen by it: attention is causal
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::size_t begin = i * static_cast<std::size_t>(shape_.length);
    std::ranges::copy(texts[i], tokens_.begin() + static_cast<std::ptrdiff_t>(begin));
    last_[i] = static_cast<std::int32_t>(begin + texts[i].size() - 1);
  }
  inputs_.upload(store_, tokens_, tokens_, boundaries_);
  if (shape_.wanted == BatchShape::Wanted::one_each) {
    store_.upload(prefix_ + "/last", std::as_bytes(std::span(last_)));
  }
  program_->run();
  store_.download(prefix_ + "/logits", std::as_writable_bytes(std::span(logits_)));
  return logits_;
}

}  // namespace mulligan
