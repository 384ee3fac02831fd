#include "framework/eval/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "framework/core/error.h"
#include "framework/core/philox.h"
#include "framework/core/steady_time.h"
#include "framework/core/utf8.h"
#include "framework/graph/passes.h"
#include "framework/model/elements/stages.h"
#include "framework/model/forward.h"

namespace mulligan {

int choose_token(std::span<const float> logits, const Sampling& sampling, std::uint64_t draw) {
  const auto greedy = static_cast<int>(std::ranges::max_element(logits) - logits.begin());
  if (sampling.temperature == 0 || sampling.top_k == 1) return greedy;
  std::vector<int> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto logit = [&](int token) { return logits[static_cast<std::size_t>(token)]; };
  std::ranges::stable_sort(order, [&](int a, int b) { return logit(a) > logit(b); });
  if (sampling.top_k > 0 && sampling.top_k < static_cast<std::int64_t>(order.size()))
    order.resize(static_cast<std::size_t>(sampling.top_k));

  std::vector<double> weights;
  for (const int token : order)
    weights.push_back(std::exp((static_cast<double>(logit(token)) - static_cast<double>(logit(greedy))) /
                               sampling.temperature));
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  double rest = PhiloxStream(sampling.seed, "generate").uniform(draw) * total;
  for (std::size_t i = 0; i < order.size(); ++i) {
    rest -= weights[i];
    if (rest < 0) return order[i];
  }
  return greedy;  // rounding left nothing over
}

double token_loss_nats(std::span<const float> logits, int token) {
  const double highest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - highest);
  return highest + std::log(sum) - static_cast<double>(logits[static_cast<std::size_t>(token)]);
}

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

NextToken::NextToken(TensorStore& store, const ModelConfig& model,
                     const std::vector<ParameterLayout>& layouts, LayerOrderKind order, std::int64_t window,
                     std::int64_t sequences)
    : window_(window) {
  constexpr std::int64_t shortest = 32;
  for (std::int64_t tokens = std::min(shortest, window_);; tokens = std::min(2 * tokens, window_)) {
    lengths_[tokens] = std::make_unique<BatchProgram>(
        store, model, layouts, order, BatchShape{sequences, tokens, BatchShape::Wanted::one_each});
    if (tokens == window_) break;
  }
}

std::vector<Program*> NextToken::programs() {
  std::vector<Program*> programs;
  for (const auto& [tokens, length] : lengths_) programs.push_back(&length->program());
  return programs;
}

std::span<const float> NextToken::logits(std::vector<std::span<const std::int32_t>> texts) {
  for (auto& text : texts) text = text.last(std::min(text.size(), static_cast<std::size_t>(window_)));
  return lengths_.lower_bound(std::ssize(texts.front()))->second->logits(texts);
}

GenerateResult generate(NextToken& model, const Tokenizer& tokenizer, std::vector<int> text,
                        const GenerateOptions& options,
                        const std::function<void(std::string_view)>& on_text) {
  const auto start = std::chrono::steady_clock::now();
  GenerateResult result;
  std::vector<std::uint16_t> ids;
  for (const int id : text) ids.push_back(static_cast<std::uint16_t>(id));
  std::size_t told = tokenizer.document_text(ids).size();  // bytes of the document
  Utf8Stream characters;
  const auto tell = [&](const std::string& part) {
    if (on_text && !part.empty()) on_text(part);
  };
  for (std::int64_t draw = 0; draw < options.max_tokens; ++draw) {
    std::span<const float> logits = model.logits({std::span<const std::int32_t>(text)});
    logits = logits.first(std::min(logits.size(), static_cast<std::size_t>(tokenizer.vocab_size())));
    if (std::ranges::any_of(logits, [](float logit) { return !std::isfinite(logit); })) {
      throw run_error("the model's logits are not finite, so its weights are broken; nothing is generated.");
    }
    const int token = choose_token(logits, options.sampling, static_cast<std::uint64_t>(draw));
    if (token == options.bos_id) {
      result.ended = true;
      break;
    }
    result.loss_nats += token_loss_nats(logits, token);
    result.tokens.push_back(token);
    text.push_back(token);
    ids.push_back(static_cast<std::uint16_t>(token));
    const std::string whole = tokenizer.document_text(ids);
    tell(characters.take(whole.substr(std::min(told, whole.size()))));
    told = whole.size();
  }
  tell(characters.finish());
  result.seconds = seconds_since(start);
  return result;
}

}  // namespace mulligan
