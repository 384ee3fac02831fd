#include "framework/eval/evaluator.h"

#include <fmt/format.h>
#include <algorithm>

#include "framework/core/error.h"
#include "framework/core/stop_request.h"
#include "framework/data/byte_count.h"
#include "framework/graph/passes.h"
#include "framework/model/elements/masking/config.h"
#include "framework/model/elements/stages.h"

namespace mulligan {

std::optional<MaskingOptions> masking_options(const ModelConfig& model, int bos_id) {
  if (!predicts_masked(model)) return {};
  const elements::masking::Config config = elements::masking::config_of(model);
  MaskingOptions options;
  options.share = config.share;
  options.mask_share = config.mask_share;
  options.random_share = config.random_share;
  options.token = static_cast<std::int32_t>(config.token);
  options.vocabulary = static_cast<std::int32_t>(model.vocabulary);
  options.bos_id = bos_id;
  options.seed = static_cast<std::uint64_t>(config.seed);
  return options;
}

std::string masking_text(const ModelConfig& model) {
  if (!predicts_masked(model)) return {};
  const elements::masking::Config masking = elements::masking::config_of(model);
  return fmt::format("{} of the tokens hidden ({} as token {}, {} as any, seed {})", masking.share,
                     masking.mask_share, masking.token, masking.random_share, masking.seed);
}

namespace {

constexpr const char* prefix = "eval";
constexpr const char* token_loss_name = "eval/token_loss";
constexpr const char* logits_name = "eval/logits";

bool sliding(const EvaluatorOptions& options) {
  return options.eval.mode == EvalMode::sliding;
}

std::int64_t pass_tokens(const EvaluatorOptions& options) {
  return options.eval.sequence_length * options.eval.packed_sequences;
}

// Rotary positions count from the start of the packed row or of the window.
std::int64_t row_positions(const EvaluatorOptions& options) {
  return sliding(options) ? options.eval.sequence_length : pass_tokens(options);
}

// A row of joined documents is a sequence; else segments begin anywhere.
std::int64_t rotary_positions(const EvaluatorOptions& options) {
  return options.bos_id == kNoDocuments ? options.eval.sequence_length : row_positions(options);
}

}  // namespace

Evaluator::Evaluator(TensorStore& store, const ModelConfig& model,
                     const std::vector<ParameterLayout>& layouts, const EvaluatorOptions& options)
    : store_(store),
      model_(model),
      options_(options),
      program_(store.backend(), build(model, layouts, options, FusedKernels(store.backend())), "evaluate"),
      inputs_(prefix, pass_tokens(options)) {
  if (const auto masking = masking_options(model, options.bos_id)) masking_.emplace(*masking, "validation");
  store_.create_externals(program_.graph());
  inputs_.upload_rope(store_, model, rotary_positions(options));
  const auto tokens = static_cast<std::size_t>(pass_tokens(options));
  tokens_.resize(tokens);
  targets_.resize(tokens);
  token_loss_.resize(tokens);
  if (options.keep_logits) logits_.resize(tokens * static_cast<std::size_t>(model.vocabulary));
}

Graph Evaluator::build(const ModelConfig& model, const std::vector<ParameterLayout>& layouts,
                       const EvaluatorOptions& options, const FusedKernels& fused) {
  Graph graph;
  Tape tape(graph, false, fused);
  const std::int64_t tokens = pass_tokens(options);
  const std::int64_t positions = rotary_positions(options);
  const PackedInputs inputs = declare_packed_inputs(graph, prefix, model, tokens, positions);
  ForwardOptions forward;
  forward.layer_order = options.layer_order;
  forward.row_length = positions;
  const ParameterValues parameters(tape, layouts, false);
  const Value raw = build_forward(tape, model, parameters, inputs.forward, forward);
  const Value logits = transform_head(tape, model, parameters, raw, HeadUse::scoring);
  const TensorType per_token(MLG_F32, {tokens});
  graph.call("cross_entropy_fwd", {logits, inputs.targets, graph.external(token_loss_name, per_token),
                                   graph.scratch(per_token, "lse")});
  if (options.keep_logits) {
    graph.call("cast",
               {logits, graph.external(logits_name, TensorType(MLG_F32, {tokens, model.vocabulary}))});
  }
  fuse_calls(graph, fused);
  return graph;
}

// Hides tokens of the row that was filled last, sequence by sequence, so that it does not depend on how
// sequences are packed; what is hidden is the same whenever the text is scored.
void Evaluator::hide(const EvalSpan& span) {
  for (std::int64_t begin = 0; begin < span.length; begin += options_.eval.sequence_length) {
    const auto at = static_cast<std::size_t>(begin),
               count = static_cast<std::size_t>(std::min(options_.eval.sequence_length, span.length - begin));
    masking_->apply(static_cast<std::uint64_t>(span.start + begin), std::span(row_.tokens).subspan(at, count),
                    std::span(row_.targets).subspan(at, count));
  }
}

// Lays the rows of one pass one after another. Places beyond the last row hold padding that is not scored.
void Evaluator::upload_pass(std::span<const std::uint16_t> tokens, std::span<const EvalSpan> pass) {
  const std::int64_t row_tokens = row_positions(options_);
  const std::int64_t places = pass_tokens(options_) / row_tokens;
  const std::int64_t longest = sliding(options_) ? 0 : options_.eval.sequence_length;
  cu_seqlens_.clear();
  for (std::int64_t place = 0; place < places; ++place) {
    const bool used = place < static_cast<std::int64_t>(pass.size());
    const EvalSpan span = used ? pass[static_cast<std::size_t>(place)] : EvalSpan{};
    fill_eval_row(tokens, span, row_tokens, options_.bos_id, longest, row_);
    if (masking_) hide(span);
    const std::int64_t start = place * row_tokens;
    std::ranges::copy(row_.tokens, tokens_.begin() + start);
    std::ranges::copy(row_.targets, targets_.begin() + start);
    for (std::int32_t segment = 0; segment < row_.segment_count; ++segment) {
      cu_seqlens_.push_back(row_.cu_seqlens[static_cast<std::size_t>(segment)] +
                            static_cast<std::int32_t>(start));
    }
  }
  cu_seqlens_.push_back(static_cast<std::int32_t>(places * row_tokens));
  inputs_.upload(store_, tokens_, targets_, cu_seqlens_);
}

std::size_t Evaluator::rows_per_pass() const {
  return static_cast<std::size_t>(pass_tokens(options_) / row_positions(options_));
}

EvalSums Evaluator::score(std::span<const std::uint16_t> tokens, const ByteCounter* bytes, int world_size,
                          int rank, const RowListener& listener, const PassListener& passed,
                          const EvalPosition& from, std::size_t until_row) {
  const std::vector<EvalSpan> rows = eval_rows(std::ssize(tokens), options_.eval, world_size, rank);
  const std::int64_t row_tokens = row_positions(options_);
  const std::size_t per_pass = rows_per_pass();
  EvalSums sums = from.sums;
  if (!rows.empty()) {
    sums.first_target = rows.front().start + rows.front().score_begin + 1;
    sums.last_target = rows.back().start + rows.back().length;
  }
  for (std::size_t first = from.row; first < std::min(rows.size(), until_row); first += per_pass) {
    throw_if_stopping();
    const auto pass = std::span(rows).subspan(first, std::min(per_pass, rows.size() - first));
    upload_pass(tokens, pass);
    program_.run();
    store_.download(token_loss_name, std::as_writable_bytes(std::span(token_loss_)));
    if (options_.keep_logits) store_.download(logits_name, std::as_writable_bytes(std::span(logits_)));
    const std::size_t vocabulary = logits_.size() / token_loss_.size();
    for (std::size_t place = 0; place < pass.size(); ++place) {
      const EvalSpan& span = pass[place];
      const auto losses =
          std::span<const float>(token_loss_)
              .subspan(place * static_cast<std::size_t>(row_tokens), static_cast<std::size_t>(span.length));
      const auto logits =
          std::span<const float>(logits_).subspan(place * static_cast<std::size_t>(row_tokens) * vocabulary,
                                                  static_cast<std::size_t>(span.length) * vocabulary);
      if (listener) listener(span, losses, logits);
      // Sequence by sequence, so that the sum does not depend on how ranks share and pack them.
      const std::int64_t part_tokens = sliding(options_) ? span.length : options_.eval.sequence_length;
      for (std::int64_t begin = span.score_begin; begin < span.length;) {
        const std::int64_t end = std::min(span.length, begin - begin % part_tokens + part_tokens);
        double part_nats = 0;
        for (std::int64_t i = begin; i < end; ++i) {
          const auto position = static_cast<std::size_t>(span.start + i);
          part_nats += static_cast<double>(losses[static_cast<std::size_t>(i)]);
          const auto target = static_cast<std::size_t>(static_cast<std::int64_t>(place) * row_tokens + i);
          sums.tokens += masking_ && targets_[target] < 0 ? 0 : 1;
          if (bytes) sums.bytes += static_cast<std::uint64_t>(bytes->bytes_at(tokens, position + 1));
        }
        sums.loss_nats += part_nats;
        if (world_size > 1) sums.parts_nats.push_back(part_nats);
        begin = end;
      }
    }
    if (passed) passed({first + pass.size(), sums}, rows.size());
  }
  return sums;
}

}  // namespace mulligan
