#include "framework/artifact/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "framework/graph/passes.h"
#include "framework/model/forward.h"

namespace mulligan {
namespace {

constexpr const char* prefix = "calibration";

std::string moment_name(const TapPoint& point) {
  return fmt::format("hessian/{}.{}", static_cast<int>(point.kind), point.layer);
}

// Adds X^T X of what each site's linear layer reads to the point's moments.
class MomentTaps : public Taps {
 public:
  explicit MomentTaps(std::map<TapPoint, std::int64_t>& executions) : executions_(executions) {}

  Value at(Tape& tape, const TapSite& site) override {
    const TapPoint point{site.kind, site.layer};
    if (!executions_.contains(point)) return site.output;
    ++executions_[point];
    Graph& graph = tape.graph();
    const TensorType& type = graph.type(site.layer_input);
    const std::int64_t tokens = type.dims[0];
    const std::int64_t columns = type.elements() / tokens;
    const Value x = graph.reshape(site.layer_input, TensorType(type.dtype, {tokens, columns}));
    const Value moments = graph.external(moment_name(point), TensorType(MLG_F32, {columns, columns}));
    graph.call("matmul", {x, x, moments},
               {{"transpose_a", 1}, {"transpose_b", 0}, {"alpha", 1}, {"beta", 1}});
    return site.output;
  }
  bool changes(const Graph&, const TapSite&, const TensorType&) const override { return false; }

 private:
  std::map<TapPoint, std::int64_t>& executions_;
};

// All points where a linear layer reads, not yet executed.
std::map<TapPoint, std::int64_t> tap_points(const ModelConfig& model) {
  std::map<TapPoint, std::int64_t> executions;
  for (const ArtifactPart& part : artifact_parts(model)) {
    if (part.input) executions[*part.input] = 0;
  }
  return executions;
}

}  // namespace

Calibrator::Calibrator(TensorStore& store, const ModelConfig& model,
                       const std::vector<ParameterLayout>& layouts, const CalibrationShape& shape)
    : store_(store),
      shape_(shape),
      executions_(tap_points(model)),
      program_(store.backend(), build(model, layouts), "calibrate"),
      arena_(store.backend()),
      inputs_(prefix, rows_per_pass() * shape.row_tokens) {
  store_.create_externals(program_.graph());
  arena_.bind({&program_}, store_);
  inputs_.upload_rope(store_, model, shape_.row_tokens);
  for (std::int64_t row = 0; row <= rows_per_pass(); ++row) {
    boundaries_.push_back(static_cast<std::int32_t>(row * shape_.row_tokens));
  }
  reset();
}

std::int64_t Calibrator::rows_per_pass() const {
  const std::int64_t most = std::max<std::int64_t>(1, shape_.pass_tokens / shape_.row_tokens);
  std::int64_t rows = std::min(most, shape_.batch_rows);
  while (shape_.batch_rows % rows != 0) --rows;
  return rows;
}

Graph Calibrator::build(const ModelConfig& model, const std::vector<ParameterLayout>& layouts) {
  Graph graph;
  Tape tape(graph, false, FusedKernels(store_.backend()));
  const PackedInputs inputs =
      declare_packed_inputs(graph, prefix, model, rows_per_pass() * shape_.row_tokens, shape_.row_tokens);
  MomentTaps taps(executions_);
  ForwardOptions forward;
  forward.layer_order = scored_order(model);
  forward.row_length = shape_.row_tokens;
  forward.taps = &taps;
  build_forward(tape, model, ParameterValues(tape, layouts, false), inputs.forward, forward);
  fuse_calls(graph, tape.fused());
  return graph;
}

void Calibrator::rehearse() {
  const std::vector<std::int32_t> blank(static_cast<std::size_t>(rows_per_pass() * shape_.row_tokens));
  inputs_.upload(store_, blank, blank, boundaries_);
  program_.run();
  store_.backend().synchronize();
  reset();
}

void Calibrator::add(std::span<const std::int32_t> tokens) {
  if (static_cast<std::int64_t>(tokens.size()) != shape_.batch_rows * shape_.row_tokens) {
    throw std::logic_error(fmt::format("Calibrator: a batch of {} tokens instead of {} rows of {}",
                                       tokens.size(), shape_.batch_rows, shape_.row_tokens));
  }
  const auto pass = static_cast<std::size_t>(rows_per_pass() * shape_.row_tokens);
  for (std::size_t first = 0; first < tokens.size(); first += pass) {
    const auto part = tokens.subspan(first, pass);
    inputs_.upload(store_, part, part, boundaries_);  // targets are not read: no loss is computed
    program_.run();
  }
  ++batches_;
}

InputMoments Calibrator::moments(const TapPoint& point) const {
  if (batches_ == 0) throw std::logic_error("Calibrator: no batch was added");
  InputMoments moments{store_.download_as<float>(moment_name(point)), {}};
  const auto count = static_cast<double>(batches_);
  for (float& value : moments.hessian) value = static_cast<float>(value / count);
  const std::size_t elements = moments.hessian.size();
  const auto columns = static_cast<std::size_t>(std::llround(std::sqrt(static_cast<double>(elements))));
  const auto rows = static_cast<double>(executions_.at(point) * shape_.batch_rows * shape_.row_tokens);
  for (std::size_t i = 0; i < elements; i += columns + 1)
    moments.rms.push_back(static_cast<float>(std::sqrt(static_cast<double>(moments.hessian[i]) / rows)));
  return moments;
}

void Calibrator::reset() {
  for (const auto& [point, count] : executions_) store_.zero(moment_name(point));
  batches_ = 0;
}

}  // namespace mulligan
