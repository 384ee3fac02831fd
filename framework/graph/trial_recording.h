// Whether what a plugin would record can be used: it is recorded into a graph of its own first, for the fused
// kernels of a plugin are known by name only then.
#pragma once

#include "framework/graph/fused_kernels.h"
#include "framework/graph/graph.h"
#include "framework/plugin/optimizer.h"

namespace mulligan {

// Whether graphs may use every kernel that `trial` calls.
bool have_kernels_of(const FusedKernels& fused, const Graph& trial);

// Whether updates of a parameter of this type (with its master's dtype) may be recorded with all that
// mlg_update offers. An optimiser that refuses the parameter says so when its update is recorded.
bool can_fuse_update(const FusedKernels& fused, const Optimizer& optimizer, const TensorType& parameter);

}  // namespace mulligan
