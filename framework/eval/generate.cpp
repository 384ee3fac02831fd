#include "framework/eval/generate.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "framework/core/error.h"
#include "framework/core/philox.h"
#include "framework/core/utf8.h"
#include "framework/graph/passes.h"
#include "framework/model/elements/stages.h"

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

namespace {

constexpr std::int64_t shortest = 32;
constexpr const char* next_logits_name = "next/logits";

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
  graph.call("cast", {logits, graph.external(next_logits_name, TensorType(MLG_F32, {1, model.vocabulary}))});
  store_.create_externals(graph);
  fuse_calls(graph, tape.fused());
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
  store_.download(next_logits_name, std::as_writable_bytes(std::span(logits_)));
  return logits_;
}

namespace {

// The bytes that the tokens of a document add to it, in order.
class TextBytes {
 public:
  TextBytes(const Tokenizer& tokenizer, const std::vector<int>& document) : tokenizer_(tokenizer) {
    for (const int id : document) ids_.push_back(static_cast<std::uint16_t>(id));
    told_ = tokenizer_.document_text(ids_).size();
  }
  std::string add(int id) {
    ids_.push_back(static_cast<std::uint16_t>(id));
    const std::string text = tokenizer_.document_text(ids_);
    std::string added = text.substr(std::min(told_, text.size()));
    told_ = text.size();
    return added;
  }

 private:
  const Tokenizer& tokenizer_;
  std::vector<std::uint16_t> ids_;
  std::size_t told_ = 0;
};

}  // namespace

GenerateResult generate(NextToken& model, const Tokenizer& tokenizer, std::vector<int> text,
                        const GenerateOptions& options,
                        const std::function<void(std::string_view)>& on_text) {
  GenerateResult result;
  TextBytes bytes(tokenizer, text);
  Utf8Stream characters;
  const auto tell = [&](const std::string& part) {
    if (on_text && !part.empty()) on_text(part);
  };
  for (std::int64_t draw = 0; draw < options.max_tokens; ++draw) {
    std::span<const float> logits = model.logits(text);
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
    tell(characters.take(bytes.add(token)));
  }
  tell(characters.finish());
  return result;
}

}  // namespace mulligan
