// The launches around a library's attention (attention_rows.cu), and the workspace through which
// they hand over.
#pragma once

#include <mulligan/cuda_kernel.h>

#include <array>
#include <memory>

#include "plugins/backends/cuda/attention.h"

namespace mulligan::cuda {

struct ReleasePlan {
  void operator()(mlg_cuda_plan* plan) const;
};
using LaunchPlan = std::unique_ptr<mlg_cuda_plan, ReleasePlan>;

const char* attention_rows_source();

// What the starts of rows are made from, and for.
struct RowLayout {
  std::int64_t boundaries = 0;                // elements of cu_seqlens: segments + 1
  std::int64_t most_rows = 0;                 // rows, with empty ones at the end
  std::int64_t query = 0, kv = 0, stats = 0;  // elements per token of the tensors that rows start in

  auto operator<=>(const RowLayout&) const = default;
};

// The launch that makes them; its arguments, all int32.
struct SegmentRowsCall {
  static constexpr const char* name = "attention_rows";
  static constexpr const char* signature =
      "in cu_seqlens, out query_starts, out kv_starts, out stats_starts, out lengths";
  enum Argument : std::uint32_t { cu_seqlens, query_starts, kv_starts, stats_starts, lengths };
};
LaunchPlan plan_segment_rows(const RowLayout& layout);

// Around one run of a plan. Packed statistics are the kernel's lse itself.
struct AttentionRows {
  LaunchPlan before, after;  // indices of tensors are those of the kernel's signature
  // Places in the workspace, empty where the tensor itself is handed over: the statistics of a plan that is
  // not packed; gradients of q, k and v that are added to what is there.
  mlg_cuda_argument stats{};
  std::array<mlg_cuda_argument, 3> gradients{};
  std::size_t bytes = 0;
};

// Of a call of attention_fwd or attention_bwd.
AttentionRows plan_attention_rows(const mlg_launch& call, const AttentionShape& shape);

}  // namespace mulligan::cuda
