#include "kernels/attention/cuda_rows.h"

#include <mulligan/cuda/element_plan.hpp>

#include "kernels/attention/signature.h"

namespace mulligan::cuda {
namespace {

#include "attention/cuda_rows.cu.inc"

using sdk::CudaCall;
using Forward = shapes::AttentionForward;
using Backward = shapes::AttentionBackward;

constexpr std::uint32_t kThreads = 256;

std::int64_t blocks_for(std::int64_t count) {
  return (count + kThreads - 1) / kThreads;
}

LaunchPlan take(CudaCall& call) {
  return LaunchPlan(static_cast<mlg_cuda_plan*>(call.take_plan()));
}

// Room for `count` elements of `size` bytes; none where it is not `used`.
mlg_cuda_argument room(CudaCall& call, bool used, std::int64_t count, std::size_t size) {
  return used ? call.workspace(static_cast<std::size_t>(count) * size) : call.null();
}

}  // namespace

void ReleasePlan::operator()(mlg_cuda_plan* plan) const {
  CudaCall::release_plan(plan);
}

const char* attention_rows_source() {
  return kSource;
}

LaunchPlan plan_segment_rows(const RowLayout& layout) {
  using Call = SegmentRowsCall;
  const auto ints = [](std::int64_t count) { return mlg_tensor{nullptr, MLG_I32, 1, {count, 1, 1, 1}}; };
  const mlg_tensor starts = ints(layout.most_rows + 1);
  const std::array<mlg_tensor, 5> tensors{ints(layout.boundaries), starts, starts, starts,
                                          ints(layout.most_rows)};
  mlg_launch launch{};
  launch.arguments = tensors.data();
  launch.argument_count = static_cast<std::uint32_t>(tensors.size());
  CudaCall call(Call::name, Call::signature, &launch);
  call.launch(MLG_INSTANCE(attention_rows), {blocks_for(layout.most_rows + 1), 1, 1}, {kThreads, 1, 1},
              Call::cu_seqlens, static_cast<int>(layout.boundaries - 1), static_cast<int>(layout.most_rows),
              static_cast<int>(layout.query), static_cast<int>(layout.kv), static_cast<int>(layout.stats),
              Call::query_starts, Call::kv_starts, Call::stats_starts, Call::lengths);
  return take(call);
}

AttentionRows plan_attention_rows(const mlg_launch& launch, const AttentionShape& shape) {
  const char* signature = shape.backward ? Backward::signature : Forward::signature;
  CudaCall before("attention_rows", signature, &launch), after("attention_rows", signature, &launch);
  const auto argument = [](const mlg_cuda_argument& place) { return sdk::CudaArgument(place); };

  AttentionRows plan;
  plan.stats = room(before, !shape.packed, shape.tokens * shape.query_heads, sizeof(float));
  for (std::uint32_t i = 0; i < 3; ++i) {
    const bool accumulate = shape.backward && before.attribute(Backward::accumulate_dq + i) != 0;
    const std::int64_t count = shape.backward ? before.size(Backward::dq + i) : 0;
    plan.gradients[i] = room(before, accumulate, count, sizeof(bf16));
    if (!accumulate) continue;
    const sdk::ElementPlan elements{count, 8};
    after.launch(MLG_INSTANCE(attention_add), elements, argument(plan.gradients[i]),
                 after.tensor(Backward::dq + i), static_cast<long long>(count));
  }
  plan.bytes = before.workspace_bytes();

  if (!shape.packed) {
    const int tokens = static_cast<int>(shape.tokens), heads = static_cast<int>(shape.query_heads),
              row_length = static_cast<int>(shape.longest);
    const std::array<std::int64_t, 3> grid{blocks_for(shape.tokens * shape.query_heads), 1, 1};
    if (shape.backward) {
      before.launch(MLG_INSTANCE(attention_lse_to_stats), grid, {kThreads, 1, 1}, Backward::lse,
                    argument(plan.stats), tokens, heads, row_length);
    } else {
      after.launch(MLG_INSTANCE(attention_stats_to_lse), grid, {kThreads, 1, 1}, argument(plan.stats),
                   Forward::lse, tokens, heads, row_length);
    }
  }
  plan.before = take(before);
  plan.after = take(after);
  return plan;
}

}  // namespace mulligan::cuda
