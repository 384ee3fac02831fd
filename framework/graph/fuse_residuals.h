// A pass over a finished graph: what stands between two blocks becomes one call.
//
//   forward    scaled_add_norm_fwd without a norm -> [skip_merge_fwd ->] residual_mix_norm_fwd of its result
//   backward   residual_mix_norm_bwd -> [skip_merge_bwd ->] scaled_add_norm_bwd of its gradient
//
// each become a call of residual_chain (docs/kernels.md), at the place of the last of them. (An addition
// without a scale has no call of its own backward: its terms share its gradient.) The sum and what
// the skip made of it are then written only if another call reads them; the fused backward call computes them
// again from what scaled_add_norm was given. The gradient of the mean of two lanes (rms_norm_bwd -> two axpby
// of its gradient by the same power of two -> lane_merge_bwd) is one tensor for both. Results are the same up
// to the order of rounding in the kernels.
#pragma once

#include <cstddef>

#include "framework/graph/fused_kernels.h"
#include "framework/graph/graph.h"

namespace mulligan {

// Where `fused` has residual_chain. Values keep their ids, so what was kept of the graph stays valid. The
// calls before number `split` and those from it on, which may run apart, are not mixed; returns where the
// second part begins now.
std::size_t fuse_residuals(Graph& graph, const FusedKernels& fused, std::size_t split = 0);

// The same for kernels that read and write as `access` says. Calls that would see another value than before,
// or another order of writes, keep their neighbours from being fused; a kernel that `access` does not know
// counts as reading and writing all of its arguments.
std::size_t fuse_residuals(Graph& graph, const CallAccess& access, std::size_t split);

}  // namespace mulligan
