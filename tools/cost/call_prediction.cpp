#include "tools/cost/prediction.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "framework/graph/row_rules.h"

namespace mulligan {
namespace {

constexpr std::int64_t product_tile = 128, wide_extent = 4096;

bool activates(const Call& call) {
  return call.kernel == "linear_leaky_relu_squared_fwd" || call.kernel == "linear_leaky_relu_squared_bwd";
}

// m, n, k of a matmul, the largest first.
std::array<std::int64_t, 3> product_extents(const Graph& graph, const Call& call) {
  const TensorType& a = graph.type(call.arguments[0]);
  const TensorType& c = graph.type(activates(call) ? call.arguments.back() : call.arguments[2]);
  const std::int64_t rows = c.dims[c.rank - 2], columns = c.dims[c.rank - 1];
  const std::int64_t a_elements = a.dims[a.rank - 1] * a.dims[a.rank - 2];
  std::array<std::int64_t, 3> extents{rows, columns, rows == 0 ? 0 : a_elements / rows};
  std::ranges::sort(extents, std::greater<>());
  return extents;
}

double product_rate(const Graph& graph, const Call& call, const Card& card) {
  if (graph.type(call.arguments[0]).dtype == MLG_F32) return card.fp32_product_flops_per_second;
  const std::int64_t smallest = product_extents(graph, call)[2];
  switch (product_class(graph, call)) {
    case ProductClass::wide:
      return card.wide_product_flops_per_second;
    case ProductClass::layer:
      return card.layer_product_flops_per_second;
    case ProductClass::narrow:
      return card.layer_product_flops_per_second * static_cast<double>(smallest) / product_tile;
  }
  return 0;
}

double attention_rate(const Call& call, bool library, const Card& card) {
  if (!library) return card.own_attention_flops_per_second;
  return call.kernel == "attention_fwd" ? card.attention_forward_flops_per_second
                                        : card.attention_backward_flops_per_second;
}

// Bytes that a library moves around its backward pass (predict_call).
double bytes_around_backward(const Graph& graph, const Call& call) {
  const auto bytes = [&](std::size_t argument) {
    return static_cast<double>(graph.type(call.arguments.at(argument)).bytes());
  };
  constexpr std::size_t o = 4, d_o = 6, dq = 7, dk = 8, dv = 9;
  const double f32_sum = 4.0 * static_cast<double>(graph.type(call.arguments[0]).elements());
  return f32_sum + bytes(o) + bytes(d_o) + 3 * f32_sum + bytes(dq) + bytes(dk) + bytes(dv);
}

// A matmul and a launch that activates its result, forward (u, y) or backward (u, du twice), in `parts` of rows. The launch
// finds the result in the card's cache where twice its size fits there.
void add_separate_activation(const Graph& graph, const Call& call, double product_rate, std::uint32_t parts,
                             const Card& card, CostRow& prediction, double& compute, double& around) {
  const auto bytes = [&](std::size_t argument) {
    return static_cast<double>(graph.type(call.arguments.at(argument)).bytes());
  };
  const bool forward = call.kernel.ends_with("_fwd");
  const double result = static_cast<double>(graph.type(call.arguments.back()).bytes());
  const double product_bytes = bytes(0) + bytes(1) + result;
  const bool cached = 2 * result / parts <= card.cache_bytes;
  if (!cached) prediction.bytes_read += result;
  if (!forward || !call.arguments[2]) prediction.bytes_written += result;
  compute = std::max(prediction.flops / product_rate, product_bytes / card.sustained_bytes_per_second);
  around = (forward ? 2 : 3) * result - (cached ? result : 0);
}

// Bytes of arguments that a kernel is given and does not read, by its code.
double unread_bytes(const Graph& graph, const Call& call) {
  const auto bytes = [&](std::size_t argument) {
    const Value value = call.arguments[argument];
    return value ? static_cast<double>(graph.type(value).bytes()) : 0.0;
  };
  if (call.kernel ==
      "qkv_split_norm_rope_bwd") {  // of a packed row only the heads that norm and rotation turned
    constexpr std::size_t packed = 0, dq = 4, dk = 5;
    return bytes(packed) - bytes(dq) - bytes(dk);
  }
  if (call.kernel == "scaled_add_norm_bwd") {  // y for the norm's gradient alone, a for that of s
    constexpr std::size_t y = 0, a = 1, dn = 4, ds = 7;
    return (call.arguments[dn] ? 0.0 : bytes(y)) + (call.arguments[ds] ? 0.0 : bytes(a));
  }
  return 0;
}

// Seconds of kernels whose instructions may take longer than their bytes: of an element, by their machine code for sm_90a
// (docs/kernels.md). A card issues one for each lane in the time of a fused multiply-add, which counts as two operations.
double instruction_seconds(const Graph& graph, const Call& call, const Card& card) {
  constexpr std::pair<std::string_view, double> kernels[] = {
      {"softcap_ce_fwd", 15}, {"softcap_ce_bwd", 22}, {"softcap_ce_fwd_bwd", 35}};
  const auto known = std::ranges::find(kernels, call.kernel, &std::pair<std::string_view, double>::first);
  if (known == std::end(kernels)) return 0;
  return known->second * static_cast<double>(graph.type(call.arguments[0]).elements()) /
         (card.fp32_flops_per_second / 2);
}

}  // namespace

ProductClass product_class(const Graph& graph, const Call& call) {
  const auto [largest, middle, smallest] = product_extents(graph, call);
  if (smallest < product_tile) return ProductClass::narrow;
  return middle >= wide_extent ? ProductClass::wide : ProductClass::layer;
}

CostRow predict_call(const Graph& graph, const Call& call, const CallAccess& access, const mlg_work& work,
                     std::int64_t segment_tokens, const Card& card) {
  CostRow prediction;
  prediction.calls = 1;
  const std::vector<Access> accesses = access.of(call);
  for (std::size_t i = 0; i < call.arguments.size(); ++i) {
    if (!call.arguments[i]) continue;
    const auto bytes = static_cast<double>(graph.type(call.arguments[i]).bytes());
    if (accesses[i].read) prediction.bytes_read += bytes;
    if (accesses[i].written) prediction.bytes_written += bytes;
  }
  prediction.bytes_read -= unread_bytes(graph, call);
  const Cost cost = call_cost(graph, call, segment_tokens, card);
  prediction.flops = cost.matmul_flops + cost.attention_flops;
  const bool library = work.library_calls > 0;
  const bool library_backward = library && call.kernel == "attention_bwd";
  prediction.launches = std::int64_t{work.launches} + work.library_calls * (library_backward ? 3 : 1);

  double compute = 0, around = 0;
  if (is_product(call)) compute = prediction.flops / product_rate(graph, call, card);
  if (is_attention(call)) compute = prediction.flops / attention_rate(call, library, card);
  compute = std::max(compute, instruction_seconds(graph, call, card));
  if (library_backward) around = bytes_around_backward(graph, call);
  double moved = prediction.bytes_read + prediction.bytes_written;
  if (activates(call)) {
    const double rate = product_rate(graph, call, card);
    compute = prediction.flops / rate;
    if (library) {
      add_separate_activation(graph, call, rate, work.library_calls, card, prediction, compute, around);
      moved = 0;  // in both already
    }
  }
  prediction.seconds = static_cast<double>(prediction.launches) * card.launch_seconds +
                       std::max(compute, moved / card.sustained_bytes_per_second) +
                       around / card.sustained_bytes_per_second;
  return prediction;
}

namespace {

// A row of the table of sums. `in_micro_step` is false for clip, update and averages.
std::string cost_category(const Graph& graph, const Call& call, bool in_micro_step) {
  const std::string_view kernel = call.kernel;
  if (!in_micro_step) return "optimiser, clip, averages";
  if (is_product(call)) {
    return product_class(graph, call) == ProductClass::wide ? "head matmuls" : "layer matmuls";
  }
  if (activates(call)) return "MLP matmuls with activation";
  if (is_attention(call)) return kernel.ends_with("_bwd") ? "attention, backward" : "attention, forward";
  if (const KernelRows* known = rows_of_kernel(kernel); known && !known->cost.empty())
    return std::string(known->cost);
  if (kernel.starts_with("softcap_ce")) return "cross entropy";  // the loss's own kernels
  return "skips, lanes, embedding, sums";
}

}  // namespace

CostRow event_cost(const StepRehearsal& rehearsal, const StepEvent& event, std::int64_t segment_tokens,
                   const Card& card) {
  using Kind = StepEvent::Kind;
  if (event.kind == Kind::call) {
    const Graph& graph = event.program->graph();
    const Call& call = graph.calls()[event.call];
    CostRow row = predict_call(graph, call, rehearsal.access(), rehearsal.work(event), segment_tokens, card);
    const std::optional<StepRole> role = rehearsal.role_of(event.program);
    row.program = role ? role_name(*role) : event.program->name();
    row.kernel = call.kernel;
    row.category = cost_category(graph, call, role == StepRole::micro_step);
    return row;
  }
  const auto bytes = static_cast<double>(event.bytes);
  CostRow row{"between programs", "", "", "memsets and copies", 1};
  row.bytes_written = bytes;
  switch (event.kind) {
    case Kind::zero:
      row.kernel = "memset";
      row.seconds = card.launch_seconds + bytes / card.sustained_bytes_per_second;
      return row;
    case Kind::copy:
      row.kernel = "copy";
      row.bytes_read = bytes;
      row.seconds = card.launch_seconds + 2 * bytes / card.sustained_bytes_per_second;
      return row;
    default:  // Kind::upload
      row.kernel = "upload";
      row.category = "uploads";
      row.seconds = card.upload_seconds + bytes / card.upload_bytes_per_second;
      return row;
  }
}

}  // namespace mulligan
