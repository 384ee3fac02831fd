// Launches of attention_rows.cu.
#include "plugins/backends/cuda/kernels/attention_rows.h"

#include <mulligan/cuda/element_plan.hpp>

#include "plugins/backends/common/shapes/attention.h"

namespace mulligan::cuda {
namespace {

#include "plugins/backends/cuda/kernels/attention_rows.cu"

constexpr char kSource[] =
#include "attention_rows.cu.inc"
    ;

using sdk::CudaCall;
using Forward = shapes::AttentionForward;
using Backward = shapes::AttentionBackward;

constexpr std::uint32_t kThreads = 256;

std::int64_t blocks_for(std::int64_t count) {
  return (count + kThreads - 1) / kThreads;
}

AttentionRows::Plan take(CudaCall& call) {
  return AttentionRows::Plan(static_cast<mlg_cuda_plan*>(call.take_plan()));
}

// Room for `count` elements of `size` bytes; none where it is not `used`.
mlg_cuda_argument room(CudaCall& call, bool used, std::int64_t count, std::size_t size) {
  return used ? call.workspace(static_cast<std::size_t>(count) * size) : call.null();
}

}  // namespace

void AttentionRows::Release::operator()(mlg_cuda_plan* plan) const {
  CudaCall::release_plan(plan);
}

const char* attention_rows_source() {
  return kSource;
}

AttentionRows plan_attention_rows(const mlg_launch& launch, const AttentionShape& shape,
                                  std::int64_t most_rows) {
  const char* signature = shape.backward ? Backward::signature : Forward::signature;
  CudaCall before("attention_rows", signature, &launch), after("attention_rows", signature, &launch);
  const auto argument = [](const mlg_cuda_argument& place) { return sdk::CudaArgument(place); };
  const int tokens = static_cast<int>(shape.tokens), heads = static_cast<int>(shape.query_heads),
            kv_heads = static_cast<int>(shape.kv_heads), width = static_cast<int>(shape.width),
            rows = static_cast<int>(shape.rows),
            row_length = shape.packed ? 0 : static_cast<int>(shape.longest);

  AttentionRows plan;
  for (mlg_cuda_argument* starts : {&plan.query_starts, &plan.kv_starts, &plan.stats_starts}) {
    *starts = before.workspace(static_cast<std::size_t>(most_rows + 1) * sizeof(int));
  }
  plan.lengths = before.workspace(static_cast<std::size_t>(most_rows) * sizeof(int));
  plan.stats = before.floats(shape.tokens * shape.query_heads);
  for (std::uint32_t i = 0; i < 3; ++i) {
    const bool accumulate = shape.backward && before.attribute(Backward::accumulate_dq + i) != 0;
    const std::int64_t count = shape.backward ? before.size(Backward::dq + i) : 0;
    plan.gradients[i] = room(before, accumulate, count, sizeof(bf16));
    if (!accumulate) continue;
    const sdk::ElementPlan elements{count, 8};
    after.launch(MLG_INSTANCE(attention_add), elements.grid(), elements.block(), argument(plan.gradients[i]),
                 after.tensor(Backward::dq + i), static_cast<long long>(count));
  }
  plan.bytes = before.workspace_bytes();

  const std::uint32_t cu_seqlens = Forward::cu_seqlens;  // as in the backward signature
  if (shape.packed) {
    before.launch(MLG_INSTANCE(attention_rows), {blocks_for(shape.rows + 1), 1, 1}, {kThreads, 1, 1},
                  before.tensor(cu_seqlens), static_cast<int>(before.dim(cu_seqlens, 0) - 1), rows,
                  heads * width, kv_heads * width, heads, argument(plan.query_starts),
                  argument(plan.kv_starts), argument(plan.stats_starts), argument(plan.lengths));
  }
  const std::array<std::int64_t, 3> grid{blocks_for(shape.tokens), shape.query_heads, 1};
  if (shape.backward) {
    before.launch(MLG_INSTANCE(attention_lse_to_stats), grid, {kThreads, 1, 1}, before.tensor(Backward::lse),
                  argument(plan.stats), tokens, heads, row_length);
  } else {
    after.launch(MLG_INSTANCE(attention_stats_to_lse), grid, {kThreads, 1, 1}, argument(plan.stats),
                 after.tensor(Forward::lse), tokens, heads, row_length);
  }
  plan.before = take(before);
  plan.after = take(after);
  return plan;
}

}  // namespace mulligan::cuda
