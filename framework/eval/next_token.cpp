#include "framework/eval/next_token.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/graph/fuse_residuals.h"
#include "framework/model/elements/stages.h"

namespace mulligan {
namespace {

constexpr std::int64_t shortest = 32;
constexpr const char* logits_name = "next/logits";

std::string prefix_of(std::int64_t tokens) {
  return fmt::format("next/{}", tokens);
}
std::string last_name(std::int64_t tokens) {
  return prefix_of(tokens) + "/last";
}

}  // namespace

NextToken::NextToken(TensorStore& store, const ModelConfig& model,
                     const std::vector<ParameterLayout>& layouts, NextTokenOptions options)
    : store_(store), options_(std::move(options)), logits_(static_cast<std::size_t>(model.vocabulary)) {
  for (std::int64_t tokens = shortest; tokens < options_.window; tokens *= 2)
    lengths_.emplace(tokens, make(model, layouts, tokens));
  lengths_.emplace(options_.window, make(model, layouts, options_.window));
}

NextToken::Length NextToken::make(const ModelConfig& model, const std::vector<ParameterLayout>& layouts,
                                  std::int64_t tokens) {
  const std::string prefix = prefix_of(tokens);
  Length length{nullptr, nullptr, PackedInputWriter(prefix, tokens)};
  if (options_.adapters) length.adapters = options_.adapters();
  Graph graph;
  Tape tape(graph, false, FusedKernels(store_.backend()));
  const PackedInputs inputs = declare_packed_inputs(graph, prefix, model, tokens, tokens);
  ForwardOptions forward;
  forward.layer_order = options_.layer_order;
  forward.row_length = tokens;
  forward.taps = length.adapters.get();
  forward.head_rows = graph.external(last_name(tokens), TensorType(MLG_I32, {1}));
  const ParameterValues parameters(tape, layouts, false);
  const Value raw = build_forward(tape, model, parameters, inputs.forward, forward);
  const Value logits = transform_head(tape, model, parameters, raw, HeadUse::scoring);
  graph.call("cast", {logits, graph.external(logits_name, TensorType(MLG_F32, {1, model.vocabulary}))});
  store_.create_externals(graph);
  fuse_residuals(graph, tape.fused());
  length.program = std::make_unique<Program>(store_.backend(), std::move(graph), prefix);
  length.inputs.upload_rope(store_, model, tokens);
  return length;
}

std::vector<Program*> NextToken::programs() {
  std::vector<Program*> programs;
  for (const auto& [tokens, length] : lengths_) programs.push_back(length.program.get());
  return programs;
}

// What follows the text in its window is not seen by it: attention is causal.
std::span<const float> NextToken::logits(std::span<const int> text) {
  const auto used = std::min(static_cast<std::int64_t>(text.size()), options_.window);
  const auto place = lengths_.lower_bound(used);
  const std::int64_t tokens = place->first;
  tokens_.assign(static_cast<std::size_t>(tokens), 0);
  std::ranges::copy(text.last(static_cast<std::size_t>(used)), tokens_.begin());
  const std::int32_t boundaries[] = {0, static_cast<std::int32_t>(tokens)};
  place->second.inputs.upload(store_, tokens_, tokens_, boundaries);
  const std::int32_t last[] = {static_cast<std::int32_t>(used - 1)};
  store_.upload(last_name(tokens), std::as_bytes(std::span(last)));
  place->second.program->run();
  store_.download(logits_name, std::as_writable_bytes(std::span(logits_)));
  return logits_;
}

}  // namespace mulligan
