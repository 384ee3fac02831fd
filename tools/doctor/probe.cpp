#include "tools/doctor/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "framework/core/philox.h"
#include "framework/eval/evaluator.h"
#include "framework/graph/call_access.h"
#include "framework/model/initialise.h"
#include "framework/model/rope.h"
#include "framework/run/weights.h"
#include "framework/step/step_graphs.h"

namespace mulligan::doctor {
namespace {

EvaluatorOptions options_for(const RunConfig& config, std::int64_t tokens) {
  EvaluatorOptions options;
  options.eval = config.eval;
  options.eval.mode = EvalMode::rows;
  options.eval.sequence_length = tokens;
  options.eval.packed_sequences = 1;
  options.layer_order = scored_order(config.model);
  return options;
}

}  // namespace

Weights initial_weights(const ModelConfig& model, std::uint64_t seed) {
  Weights weights;
  for (const ParameterSpec& spec : model_parameters(model)) weights[spec.name] = initial_values(spec, seed);
  return weights;
}

Weights vivid_weights(const ModelConfig& model) {
  Weights weights = initial_weights(model, 0);
  for (const ParameterSpec& spec : model_parameters(model)) {
    std::vector<float>& values = weights[spec.name];
    const PhiloxStream random(0, "doctor/" + spec.name);
    // Matrices that keep the size of what they multiply; vectors around where they begin.
    const double matrix_std =
        1 / std::sqrt(static_cast<double>(spec.type.dims[static_cast<std::size_t>(spec.type.rank - 1)]));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double drawn = random.normal(i);
      values[i] = static_cast<float>(spec.matrix ? matrix_std * drawn : values[i] + 0.3 * drawn);
    }
  }
  return weights;
}

Weights weights_of(const TensorStore& store, const std::vector<PlannedParameter>& parameters) {
  Weights weights;
  for (const PlannedParameter& parameter : parameters) {
    weights[parameter.name()] = download_values(store, master_name(parameter.name()));
  }
  return weights;
}

Weights weights_from(Backend& backend, const RunConfig& config, const WeightLoader& load) {
  LoadedModel model(backend, config);
  model.load(load);
  return weights_of(model.store(), plan_parameters(config));
}

Batch cut_row(const Batch& row, std::int64_t tokens, const std::optional<MaskingOptions>& masking) {
  const auto count = static_cast<std::size_t>(tokens);
  Batch cut;
  cut.tokens.assign(row.tokens.begin(), row.tokens.begin() + tokens);
  cut.targets.assign(row.targets.begin(), row.targets.begin() + tokens);
  std::vector<std::int32_t> starts;
  for (std::int32_t i = 0; i < row.segment_count; ++i) {
    const std::int32_t start = row.cu_seqlens[static_cast<std::size_t>(i)];
    if (static_cast<std::size_t>(start) < count) starts.push_back(start);
  }
  build_segments(starts, tokens, 0, cut);
  constexpr double usual_share = 0.15;
  if (!masking || cut.target_count() >= chosen_tokens(usual_share, tokens)) return cut;
  for (std::size_t t = 0; t < cut.tokens.size(); ++t) {
    if (cut.targets[t] >= 0) cut.tokens[t] = cut.targets[t];
  }
  MaskingOptions more = *masking;
  more.share = usual_share;
  Masking(more, "doctor").apply(0, cut.tokens, cut.targets);
  return cut;
}

Batch drawn_row(const std::vector<std::int64_t>& segments, std::int64_t vocabulary, std::uint64_t seed) {
  const PhiloxStream random(seed, "doctor/row");
  const std::int64_t tokens = std::accumulate(segments.begin(), segments.end(), std::int64_t{0});
  std::vector<std::int32_t> stream;
  for (std::int64_t i = 0; i <= tokens; ++i)
    stream.push_back(static_cast<std::int32_t>(random.uniform(static_cast<std::uint64_t>(i)) *
                                               static_cast<double>(vocabulary)));
  Batch row;
  row.tokens.assign(stream.begin(), stream.end() - 1);
  row.targets.assign(stream.begin() + 1, stream.end());
  std::vector<std::int32_t> starts;
  std::int64_t start = 0;
  for (const std::int64_t length : segments) {
    starts.push_back(static_cast<std::int32_t>(start));
    start += length;
  }
  build_segments(starts, tokens, 0, row);
  return row;
}

RowProbe::RowProbe(Backend& backend, Graph graph, std::string prefix, std::vector<ParameterLayout> layouts)
    : prefix_(std::move(prefix)), layouts_(std::move(layouts)), run_(backend, std::move(graph), "doctor") {}

void RowProbe::begin(const ModelConfig& model, const Weights& weights, const Batch& row) {
  if (run_.has(prefix_ + "/rope_cos")) {
    const RopeTables tables = rope_tables(model.rope, static_cast<std::int64_t>(row.tokens.size()));
    run_.set(prefix_ + "/rope_cos", tables.cos);
    run_.set(prefix_ + "/rope_sin", tables.sin);
  }
  set(weights);
  set(row);
}

void RowProbe::set(const Weights& weights) {
  for (const ParameterLayout& layout : layouts_) {
    const auto found = weights.find(layout.spec.name);
    if (found != weights.end() && run_.has(layout.read_name())) run_.set(layout.read_name(), found->second);
  }
}

void RowProbe::set(const Batch& row) {
  run_.set(prefix_ + "/tokens", row.tokens);
  run_.set(prefix_ + "/targets", row.targets);
  // Empty segments at the end fill the tensor up.
  std::vector<std::int32_t> boundaries(row.cu_seqlens.begin(),
                                       row.cu_seqlens.begin() + row.segment_count + 1);
  boundaries.resize(static_cast<std::size_t>(run_.type(prefix_ + "/cu_seqlens").elements()),
                    static_cast<std::int32_t>(row.tokens.size()));
  run_.set(prefix_ + "/cu_seqlens", boundaries);
  targets_ = row.target_count();
}

EvaluationProbe::EvaluationProbe(Backend& backend, const RunConfig& config, ComputeTypes compute,
                                 const Weights& weights, const Batch& row)
    : RowProbe(backend,
               Evaluator::build(config.model, parameter_layouts(config.model, compute),
                                options_for(config, static_cast<std::int64_t>(row.tokens.size())),
                                FusedKernels(backend)),
               "eval", parameter_layouts(config.model, compute)) {
  begin(config.model, weights, row);
}

std::vector<float> EvaluationProbe::token_losses() const {
  return run_.floats("eval/token_loss");
}

double EvaluationProbe::mean_loss() const {
  const std::vector<float> losses = token_losses();
  return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(targets_);
}

std::vector<double> EvaluationProbe::logits() const {
  const auto calls = run_.graph().calls();
  const auto loss = std::ranges::find(calls, "cross_entropy_fwd", &Call::kernel);
  return run_.numbers(loss->arguments[0]);
}

MicroStepProbe::MicroStepProbe(Backend& backend, const Loss& loss, const RunConfig& config,
                               ComputeTypes compute, const Weights& weights, const Batch& row)
    : RowProbe(backend,
               build_micro_step(config.model, with_compute_dtype(plan_parameters(config), compute), loss,
                                static_cast<std::int64_t>(row.tokens.size()), scored_order(config.model),
                                FusedKernels(backend)),
               step_tensor::batch, layouts_of(with_compute_dtype(plan_parameters(config), compute))) {
  begin(config.model, weights, row);
}

void MicroStepProbe::set(const Batch& row) {
  RowProbe::set(row);
  run_.set(step_tensor::loss_weight,
           std::vector<float>(row.tokens.size(), 1.0F / static_cast<float>(targets_)));
}

double MicroStepProbe::mean_loss() const {
  return run_.store().download_as<double>(step_tensor::loss_sum)[0] / static_cast<double>(targets_);
}

std::vector<float> MicroStepProbe::gradient(const std::string& parameter) const {
  return run_.floats(gradient_name(parameter));
}

}  // namespace mulligan::doctor
