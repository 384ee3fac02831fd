#include "tools/doctor/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "framework/core/philox.h"
#include "framework/eval/evaluator.h"
#include "framework/graph/fused_kernels.h"
#include "framework/model/initialise.h"
#include "framework/model/rope.h"
#include "framework/run/weights.h"
#include "framework/step/step_graphs.h"

namespace mulligan::doctor {
namespace {

EvaluatorOptions options_for(const RunConfig& config, std::int64_t tokens, ComputeTypes compute) {
  EvaluatorOptions options;
  options.eval = config.eval;
  options.eval.mode = EvalMode::rows;
  options.eval.sequence_length = tokens;
  options.eval.packed_sequences = 1;
  options.compute = compute.activations;
  options.layer_order = scored_order(config.model);
  return options;
}

void set_weights(PoisonedRun& run, const std::vector<ParameterLayout>& layouts, const Weights& weights) {
  for (const ParameterLayout& layout : layouts) {
    const auto found = weights.find(layout.spec.name);
    if (found != weights.end() && run.has(layout.read_name())) run.set(layout.read_name(), found->second);
  }
}

void set_rope(PoisonedRun& run, const std::string& prefix, const ModelConfig& model, std::int64_t positions) {
  if (!run.has(prefix + "/rope_cos")) return;
  const RopeTables tables = rope_tables(model.rope, positions);
  run.set(prefix + "/rope_cos", tables.cos);
  run.set(prefix + "/rope_sin", tables.sin);
}

void set_row(PoisonedRun& run, const std::string& prefix, const Batch& row) {
  run.set(prefix + "/tokens", row.tokens);
  run.set(prefix + "/targets", row.targets);
  // Empty segments at the end fill the tensor up.
  std::vector<std::int32_t> boundaries(row.cu_seqlens.begin(),
                                       row.cu_seqlens.begin() + row.segment_count + 1);
  boundaries.resize(static_cast<std::size_t>(run.type(prefix + "/cu_seqlens").elements()),
                    static_cast<std::int32_t>(row.tokens.size()));
  run.set(prefix + "/cu_seqlens", boundaries);
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

std::vector<float> values_of(const TensorStore& store, const std::string& name) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(store.type(name).bytes()));
  store.download(name, bytes);
  return decode_floats(bytes, store.type(name).dtype);
}

Weights weights_of(const TensorStore& store, const std::vector<PlannedParameter>& parameters) {
  Weights weights;
  for (const PlannedParameter& parameter : parameters) {
    weights[parameter.name()] = values_of(store, master_name(parameter.name()));
  }
  return weights;
}

Batch cut_row(const Batch& row, std::int64_t tokens) {
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
  return cut;
}

Batch cut_row(const Batch& row, std::int64_t tokens, const std::optional<MaskingOptions>& masking) {
  Batch cut = cut_row(row, tokens);
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

EvaluationProbe::EvaluationProbe(Backend& backend, const RunConfig& config, std::int64_t tokens,
                                 ComputeTypes compute)
    : layouts_(parameter_layouts(config.model, compute)),
      targets_(tokens),
      run_(backend,
           Evaluator::build(config.model, layouts_, options_for(config, tokens, compute),
                            FusedKernels(backend)),
           "doctor") {
  set_rope(run_, "eval", config.model, tokens);
}

void EvaluationProbe::set(const Weights& weights) {
  set_weights(run_, layouts_, weights);
}

void EvaluationProbe::set(const Batch& row) {
  set_row(run_, "eval", row);
  targets_ = row.target_count();
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
                               std::int64_t tokens, ComputeTypes compute)
    : tokens_(tokens),
      targets_(tokens),
      parameters_(with_compute_dtype(plan_parameters(config), compute)),
      run_(backend,
           build_micro_step(config.model, parameters_, loss, tokens, scored_order(config.model),
                            FusedKernels(backend)),
           "doctor") {
  set_rope(run_, step_tensor::batch, config.model, tokens);
  weigh_losses();
}

void MicroStepProbe::weigh_losses() {
  run_.set(step_tensor::loss_weight,
           std::vector<float>(static_cast<std::size_t>(tokens_), 1.0F / static_cast<float>(targets_)));
}

void MicroStepProbe::set(const Weights& weights) {
  set_weights(run_, layouts_of(parameters_), weights);
}

void MicroStepProbe::set(const Batch& row) {
  set_row(run_, step_tensor::batch, row);
  targets_ = row.target_count();
  weigh_losses();
}

double MicroStepProbe::mean_loss() const {
  return run_.store().download_as<double>(step_tensor::loss_sum)[0] / static_cast<double>(targets_);
}

std::vector<float> MicroStepProbe::gradient(const std::string& parameter) const {
  return run_.floats(gradient_name(parameter));
}

}  // namespace mulligan::doctor
