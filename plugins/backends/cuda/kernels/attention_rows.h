// The launches around a library's attention (attention_rows.cu), and the workspace through which
// they hand over.
#pragma once

#include <mulligan/cuda_kernel.h>

#include <array>
#include <memory>

#include "plugins/backends/cuda/attention.h"

namespace mulligan::cuda {

struct AttentionRows {
  struct Release {
    void operator()(mlg_cuda_plan* plan) const;
  };
  using Plan = std::unique_ptr<mlg_cuda_plan, Release>;
  Plan before, after;  // indices of tensors are those of the kernel's signature
  // Places in the workspace, empty where the tensor itself, or nothing, is handed over.
  mlg_cuda_argument query_starts{}, kv_starts{}, stats_starts{}, lengths{}, stats{};
  std::array<mlg_cuda_argument, 3> gradients{};  // of q, k and v where they are added to what is there
  std::size_t bytes = 0;
};

// Of a call of attention_fwd or attention_bwd. Workspace is laid out for up to `most_rows` rows, so that all
// shapes of one call share it.
AttentionRows plan_attention_rows(const mlg_launch& call, const AttentionShape& shape,
                                  std::int64_t most_rows);
const char* attention_rows_source();

}  // namespace mulligan::cuda
