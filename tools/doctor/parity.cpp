#include "tools/doctor/parity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "framework/checkpoint/float_formats.h"
#include "framework/core/error.h"
#include "framework/core/philox.h"
#include "framework/graph/row_rules.h"
#include "framework/model/initialise.h"
#include "framework/model/packed_inputs.h"
#include "tools/doctor/parity_side.h"

namespace mulligan::doctor {
namespace {

constexpr double not_computed = std::numeric_limits<double>::quiet_NaN();

struct ParityDistance {
  double cosine = 1, largest = 0;
  std::int64_t position = -1;  // first row beyond the tolerance that was asked for
};

// Of two tensors of `rows` rows, in the unit of ParityTolerance.
ParityDistance distance(const std::vector<float>& reference, const std::vector<float>& tested,
                        std::int64_t rows, double tolerance) {
  double dot = 0, of_reference = 0, of_tested = 0;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    dot += static_cast<double>(reference[i]) * tested[i];
    of_reference += static_cast<double>(reference[i]) * reference[i];
    of_tested += static_cast<double>(tested[i]) * tested[i];
  }
  ParityDistance result;
  if (of_reference != of_tested || dot != of_reference)
    result.cosine = dot / std::sqrt(of_reference * of_tested);
  const double rms =
      std::sqrt(of_reference / static_cast<double>(std::max<std::size_t>(1, reference.size())));
  const std::size_t width = reference.size() / static_cast<std::size_t>(std::max<std::int64_t>(1, rows));
  for (std::size_t i = 0; i < reference.size(); ++i) {
    if (reference[i] == tested[i] || (std::isnan(reference[i]) && std::isnan(tested[i]))) continue;
    const double off = std::abs(static_cast<double>(tested[i]) - reference[i]);
    const double unit = std::max(rms, std::abs(static_cast<double>(reference[i])));
    const double relative =
        std::isfinite(off) && unit > 0 ? off / unit : std::numeric_limits<double>::infinity();
    result.largest = std::max(result.largest, relative);
    if (relative > tolerance && result.position < 0)
      result.position = static_cast<std::int64_t>(i / std::max<std::size_t>(1, width));
  }
  return result;
}

// The arguments that a call writes.
std::vector<Value> results_of(const CallAccess& access, const Call& call) {
  const std::vector<Access> accesses = access.of(call);
  std::vector<Value> results;
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    if (accesses[i].written) results.push_back(call.arguments[i]);
  }
  return results;
}

// Those that the side under test uses and that the reference has, too.
FusedKernels common_fused_kernels(const Backend& tested, const Backend& reference) {
  if (!tested.fused_kernels()) return {};
  for (const KernelRows& row : kernel_rows()) {
    if (row.fused && tested.has_kernel(row.kernel) && !reference.has_kernel(row.kernel)) return {};
  }
  return FusedKernels(tested);
}

void keep_worst(ParityTap& tap, const ParityDistance& whole, const ParityDistance& alone,
                double op_tolerance) {
  if (whole.largest >= tap.difference) {
    tap.difference = whole.largest;
    tap.cosine = whole.cosine;
  }
  tap.alone = std::max(tap.alone, alone.largest);
  if (tap.position >= 0 && tap.alone > op_tolerance) return;
  if (alone.position >= 0) {
    tap.position = alone.position;
  } else if (tap.position < 0) {
    tap.position = whole.position;
  }
}

// Ids of a row, each from `least` to below the vocabulary; as many as `count`, where that is not 0.
std::vector<std::int32_t> ids_of(const SafetensorsFile& dump, const char* name, std::int64_t vocabulary,
                                 std::int64_t least, std::size_t count) {
  const StoredTensor& ids = dump.at(name);
  if (ids.type != StoredType::i32 || ids.shape.size() != 1 || ids.shape[0] < 1 ||
      (count > 0 && ids.element_count() != count)) {
    throw data_error("'{}' holds '{}' as {} of {} elements, but it is a row of I32, one for each token.",
                     dump.path().string(), name, stored_name(ids.type), ids.element_count());
  }
  std::vector<std::int32_t> found = ids.copy<std::int32_t>();
  for (const std::int32_t id : found) {
    if (id >= least && id < vocabulary) continue;
    throw data_error("'{}' holds the token {} in '{}', outside of the vocabulary of {}.",
                     dump.path().string(), id, name, vocabulary);
  }
  return found;
}

ParityInputs inputs_of(const SafetensorsFile& dump, const ModelConfig& model) {
  ParityInputs inputs;
  inputs.tokens = ids_of(dump, "tokens", model.vocabulary, 0, 0);
  const std::size_t count = inputs.tokens.size();
  inputs.targets.assign(count, -1);
  if (dump.find("targets")) inputs.targets = ids_of(dump, "targets", model.vocabulary, -1, count);
  const auto end = static_cast<std::int32_t>(count);
  inputs.cu_seqlens = {0, end};
  const StoredTensor* segments = dump.find("cu_seqlens");
  if (!segments) return inputs;
  const bool ints = segments->type == StoredType::i32;
  if (ints) inputs.cu_seqlens = segments->copy<std::int32_t>();
  const std::vector<std::int32_t>& cuts = inputs.cu_seqlens;
  const auto most = static_cast<std::size_t>(segment_capacity(end));
  if (!ints || cuts.size() < 2 || cuts.size() > most || cuts.front() != 0 || cuts.back() != end ||
      !std::ranges::is_sorted(cuts)) {
    throw data_error("'{}' holds 'cu_seqlens' that are not I32 from 0 to {} in order.", dump.path().string(),
                     end);
  }
  return inputs;
}

}  // namespace

std::vector<float> large_random_weights(const ParameterSpec& parameter, std::uint64_t seed) {
  std::vector<float> values = initial_values(parameter, seed);
  const PhiloxStream stream(seed, "parity/" + parameter.name);
  if (parameter.matrix) {
    const auto inputs =
        static_cast<double>(parameter.type.dims[static_cast<std::size_t>(parameter.type.rank - 1)]);
    stream.fill_normal(values, std::max(0.05, 1 / std::sqrt(inputs)));
    return values;
  }
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] += static_cast<float>((values[i] == 0 ? 1.0 : 0.3) * stream.normal(i));
  return values;
}

ParityInputs random_parity_inputs(std::int64_t tokens, std::int64_t vocabulary, std::uint64_t seed) {
  const PhiloxStream stream(seed, "parity/tokens");
  ParityInputs inputs;
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i <= tokens; ++i) {
    const double draw = stream.uniform(static_cast<std::uint64_t>(i)) * static_cast<double>(vocabulary);
    ids.push_back(
        static_cast<std::int32_t>(std::min<std::int64_t>(static_cast<std::int64_t>(draw), vocabulary - 1)));
  }
  inputs.tokens.assign(ids.begin(), ids.end() - 1);
  inputs.targets.assign(ids.begin() + 1, ids.end());
  inputs.cu_seqlens = {0, static_cast<std::int32_t>(tokens / 3), static_cast<std::int32_t>(tokens)};
  return inputs;
}

ParityTolerance parity_tolerance(DType compute) {
  if (compute == MLG_F32) return {2e-5, 2e-4, 0.9999, 1e-4};
  return {2e-2, 0.25, 0.999, 2e-2};
}

ParityReport compare_backends(const ModelConfig& model, const ParityWeights& weights,
                              const ParityInputs& inputs, Backend& reference, Backend& tested,
                              DType compute) {
  const auto tokens = static_cast<std::int64_t>(inputs.tokens.size());
  const FusedKernels fused = common_fused_kernels(tested, reference);
  const auto exact_layouts = parameter_layouts(model, MLG_F32), layouts = parameter_layouts(model, compute);
  const ParityGraph exact(model, exact_layouts, tokens, fused, "parity/value"),
      whole(model, layouts, tokens, fused, "parity/value"),
      alone(model, layouts, tokens, fused, "parity/alone");
  ParityMemory of_reference(reference), of_tested(tested);
  of_reference.fill(exact, model, exact_layouts, weights, inputs, compute);
  of_tested.store().create_externals(alone.graph());
  of_tested.fill(whole, model, layouts, weights, inputs, compute);
  ParitySide right(of_reference, exact, "parity, reference"), pass(of_tested, whole, "parity"),
      single(of_tested, alone, "parity, one op at a time");
  const CallAccess access(reference);
  ParityReport report;
  report.tolerance = parity_tolerance(compute);
  std::set<std::uint32_t> written;
  for (std::size_t i = 0; i < exact.graph().calls().size(); ++i) {
    const Call& call = exact.graph().calls()[i];
    for (const Value argument : call.arguments) {
      if (argument && written.contains(exact.graph().root(argument).id))
        single.put(argument, right.whole(argument));
    }
    right.run(i);
    pass.run(i);
    single.run(i);
    ParityTap tap;
    tap.name = exact.label(i);
    tap.kernel = call.kernel;
    for (const Value result : results_of(access, call)) {
      written.insert(exact.graph().root(result).id);
      const std::vector<float> expected = right.numbers(result);
      const std::int64_t rows = exact.graph().type(result).dims[0];
      keep_worst(tap, distance(expected, pass.numbers(result), rows, report.tolerance.pass),
                 distance(expected, single.numbers(result), rows, report.tolerance.op), report.tolerance.op);
    }
    if (!report.first && tap.alone > report.tolerance.op) report.first = i;
    report.taps.push_back(std::move(tap));
  }
  report.loss = pass.mean_loss();
  report.reference_loss = right.mean_loss();
  const Value logits = exact.graph().calls()[exact.loss_call()].arguments[0];
  right.put(logits, pass.whole(logits));
  right.run(exact.loss_call());
  report.loss_of_tested_logits = right.mean_loss();
  return report;
}

ParityReport compare_with_dump(const ModelConfig& model, const ParityWeights& weights,
                               const SafetensorsFile& dump, Backend& tested, DType compute, bool inject) {
  const ParityInputs inputs = inputs_of(dump, model);
  const auto tokens = static_cast<std::int64_t>(inputs.tokens.size());
  const auto layouts = parameter_layouts(model, compute);
  const ParityGraph graph(model, layouts, tokens, {}, "parity/value");
  ParityMemory memory(tested);
  memory.fill(graph, model, layouts, weights, inputs, compute);
  ParitySide pass(memory, graph, "parity");
  std::map<std::uint32_t, const StoredTensor*> expected;  // by id of the value
  for (const StoredTensor& tensor : dump.tensors()) {
    const std::size_t mark = tensor.name.rfind("tap.");
    const Value value = graph.named(mark == std::string::npos ? tensor.name : tensor.name.substr(mark + 4));
    if (!value || !is_weight_format(tensor.type)) continue;
    if (value == graph.token_loss() && !dump.find("targets")) continue;
    if (tensor.element_count() != static_cast<std::size_t>(graph.graph().type(value).elements())) {
      throw data_error("'{}' holds '{}' with {} elements, but here it has {}.", dump.path().string(),
                       tensor.name, tensor.element_count(), graph.graph().type(value).elements());
    }
    expected[value.id] = &tensor;
  }
  if (expected.empty()) {
    throw data_error("'{}' holds no value of this forward pass; docs/qwen2.md lists the names.",
                     dump.path().string());
  }
  ParityReport report;
  report.tolerance = parity_tolerance(compute);
  report.loss = report.reference_loss = report.loss_of_tested_logits = not_computed;
  const double tolerance = inject ? report.tolerance.op : report.tolerance.pass;
  const CallAccess access(tested);
  for (std::size_t i = 0; i < graph.graph().calls().size(); ++i) {
    const Call& call = graph.graph().calls()[i];
    pass.run(i);
    for (const Value result : results_of(access, call)) {
      const auto found = expected.find(graph.graph().root(result).id);
      if (found == expected.end()) continue;
      const std::vector<float> values = decode_weights(found->second->bytes, found->second->type);
      const ParityDistance off =
          distance(values, pass.whole(result), graph.graph().type(result).dims[0], tolerance);
      if (inject) pass.put(result, values);
      if (!report.first && off.largest > tolerance) report.first = report.taps.size();
      report.taps.push_back(
          {graph.label(i), call.kernel, off.cosine, off.largest, off.largest, off.position});
    }
  }
  return report;
}

}  // namespace mulligan::doctor
