#include "framework/ttt/base_training.h"

#include <algorithm>
#include <numeric>

#include "framework/core/error.h"
#include "framework/data/eval_rows.h"
#include "framework/graph/graph_recorder.h"
#include "framework/graph/passes.h"
#include "framework/model/elements/stages.h"
#include "framework/model/forward.h"
#include "framework/run/parameter_store.h"
#include "kernels/cross_entropy/op.h"

namespace mulligan {
namespace {

constexpr const char* prefix = "ttt/base";
constexpr const char* weights_name = "ttt/base/weights";
constexpr const char* token_losses_name = "ttt/base/token_loss";
constexpr const char* scalars_name = "ttt/base/scalars";
constexpr const char* square_sum_name = "ttt/base/square_sum";
constexpr const char* norm_name = "ttt/base/gradient_norm";
constexpr const char* clip_name = "ttt/base/clip_scale";

const mlg_base_update& checked(const mlg_base_update& numbers, const TttPlugin& plugin,
                               std::int64_t row_tokens) {
  config_error_if(
      numbers.chunk_tokens < row_tokens || numbers.batch_rows < 1 || numbers.epochs < 1,
      "[ttt.base]: {} trains on chunks of {} tokens in steps of at most {} rows, {} times, but a row has "
      "{} tokens; give chunks of at least one row.",
      plugin.plugin().description(), numbers.chunk_tokens, numbers.batch_rows, numbers.epochs, row_tokens);
  return numbers;
}

Value gradient(Graph& graph, const ParameterLayout& layout) {
  return graph.external(gradient_name(layout.spec.name), layout.spec.type);
}

}  // namespace

BaseTraining::BaseTraining(const BaseModel& model, const TttPlugin& plugin, const Optimizer& optimizer,
                           std::int64_t row_tokens, int bos_id)
    : model_(model),
      plugin_(plugin),
      optimizer_(optimizer),
      numbers_(checked(plugin.base_update(), plugin, row_tokens)),
      row_tokens_(row_tokens),
      bos_id_(bos_id),
      inputs_(prefix, step_tokens()),
      scalars_(optimizer.scalar_count()),
      weights_(static_cast<std::size_t>(step_tokens())),
      losses_(weights_.size()) {
  step_ = make_program(model.store, build_step(), "base step");
  for (const ParameterLayout& layout : model.layouts) {
    if (model.store.contains(gradient_name(layout.spec.name))) trained_.push_back(layout);
  }
  clip_ = make_program(model.store, build_clip(), "base clip");
  update_ = make_program(model.store, build_update(), "base update");
  inputs_.upload_rope(model.store, model.config, positions());
}

Graph BaseTraining::build_step() const {
  Graph graph;
  Tape tape(graph, true, FusedKernels(model_.store.backend()));
  const PackedInputs inputs = declare_packed_inputs(graph, prefix, model_.config, step_tokens(), positions());
  ForwardOptions options;
  options.layer_order = model_.layer_order;
  options.row_length = positions();
  const ParameterValues parameters(tape, model_.layouts, true);
  const Value raw = build_forward(tape, model_.config, parameters, inputs.forward, options);
  const Value logits = transform_head(tape, model_.config, parameters, raw, HeadUse::training);
  const TensorType per_token(MLG_F32, {step_tokens()});
  const Value losses = graph.external(token_losses_name, per_token);
  ops::cross_entropy(tape, logits, inputs.targets, losses);
  tape.backward(losses, graph.external(weights_name, per_token));
  fuse_calls(graph, tape.fused());
  return graph;
}

Graph BaseTraining::build_clip() const {
  Graph graph;
  const Value total = graph.external(square_sum_name, TensorType(MLG_F64, {1}));
  const Value scale = graph.external(clip_name, TensorType(MLG_F32, {1}));
  for (const ParameterLayout& layout : trained_)
    graph.call("sum_squares_f64", {gradient(graph, layout), total});
  graph.call("clip_scale", {total, graph.external(norm_name, TensorType(MLG_F32, {1})), scale},
             {{"max_norm", numbers_.clip_norm}});
  for (const ParameterLayout& layout : trained_)
    if (numbers_.clip_norm > 0) graph.call("scale_by", {gradient(graph, layout), scale});
  return graph;
}

Graph BaseTraining::build_update() {
  Graph graph;
  std::vector<mlg_parameter> rows;
  for (const ParameterLayout& layout : trained_) {
    const Value master = graph.external(master_name(layout.spec.name), layout.spec.type.as(layout.master));
    rows.push_back({layout.spec.name.c_str(), master.id, gradient(graph, layout).id, 1.0, 1.0});
  }
  Value scalars;
  if (!scalars_.empty()) scalars = graph.external(scalars_name, TensorType(MLG_F32, {std::ssize(scalars_)}));
  GraphRecorder recorder(graph, "ttt/base/optimizer");
  optimizer_.record(*recorder.table(), rows, scalars.id);
  states_ = recorder.states();
  build_refresh_copies(graph, model_.layouts);
  return graph;
}

std::vector<BaseStep> BaseTraining::run(std::span<const std::uint16_t> tokens) {
  for (const std::string& state : states_) model_.store.zero(state);
  updates_ = 0;
  const std::int64_t targets = std::max<std::int64_t>(std::ssize(tokens) - 1, 0);
  const std::int64_t chunks = (targets + numbers_.chunk_tokens - 1) / numbers_.chunk_tokens;
  const std::int64_t chunk_rows = numbers_.chunk_tokens / row_tokens_;
  std::vector<BaseStep> steps;
  for (std::int64_t chunk = 0; chunk + 1 < chunks; ++chunk) {
    const double lr = plugin_.base_rate(chunk, chunks);
    for (std::int64_t epoch = 0; epoch < numbers_.epochs; ++epoch) {
      for (std::int64_t row = 0; row < chunk_rows; row += step_rows()) {
        const std::int64_t start = chunk * numbers_.chunk_tokens + row * row_tokens_;
        steps.push_back(step(tokens, start, std::min(step_rows(), chunk_rows - row), lr));
      }
    }
  }
  return steps;
}

BaseStep BaseTraining::step(std::span<const std::uint16_t> tokens, std::int64_t start, std::int64_t rows,
                            double lr) {
  TensorStore& store = model_.store;
  upload_rows(tokens, start, rows);
  const auto used = static_cast<std::size_t>(rows * row_tokens_);
  std::fill(weights_.begin(), weights_.end(), 0.0F);
  std::fill_n(weights_.begin(), used, static_cast<float>(1.0 / static_cast<double>(used)));
  store.upload(weights_name, weights_);
  for (const ParameterLayout& layout : trained_) store.zero(gradient_name(layout.spec.name));
  store.zero(square_sum_name);
  step_->run();
  clip_->run();
  if (!scalars_.empty()) {
    optimizer_.scalars(plain_step(++updates_, lr), scalars_);
    store.upload(scalars_name, scalars_);
  }
  update_->run();

  store.download(token_losses_name, std::as_writable_bytes(std::span(losses_)));
  const double sum =
      std::accumulate(losses_.begin(), losses_.begin() + static_cast<std::ptrdiff_t>(used), 0.0);
  return {lr, sum / static_cast<double>(used),
          static_cast<double>(store.download_as<float>(norm_name).front())};
}

// The places of rows that a short step does not use hold tokens of no weight.
void BaseTraining::upload_rows(std::span<const std::uint16_t> tokens, std::int64_t start, std::int64_t rows) {
  const bool documents = numbers_.respect_documents;
  fill_eval_row(tokens, {start, rows * row_tokens_, 0}, step_tokens(), bos_id_, documents ? row_tokens_ : 0,
                row_);
  std::vector<std::int32_t> boundaries = row_.cu_seqlens;
  boundaries.resize(static_cast<std::size_t>(documents ? row_.segment_count + 1 : 0));
  for (std::int64_t row = 0; !documents && row <= step_rows(); ++row)
    boundaries.push_back(static_cast<std::int32_t>(row * row_tokens_));
  inputs_.upload(model_.store, row_.tokens, row_.targets, boundaries);
}

}  // namespace mulligan
