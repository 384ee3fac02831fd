// Passes replace several calls of a plainly written model by one fused kernel, if no other call sees the difference.
// Results are the same up to the order of rounding in the kernels. Each pass has a file that begins with the formulas
// that it rewrites. Values keep their ids, so references into a graph stay valid.
#pragma once

#include <cstddef>

#include "framework/graph/call_access.h"
#include "framework/graph/graph.h"
#include "framework/graph/tape.h"

namespace mulligan {

// Passes over the forward calls on a tape, before differentiation. A fused call has its own rule for the gradients.
void fuse_output_scales(Tape& tape);
void fuse_lanes(Tape& tape);

// Passes over the calls of a finished graph, forward and backward, for which `fused` has the kernels. The calls before number
// `split` and those from it on may run apart, so they are not mixed. Returns the new number of the second part's first call.
std::size_t fuse_calls(Graph& graph, const FusedKernels& fused, std::size_t split = 0);

// Each pass alone, for kernels with the accesses of `access`. Two calls are not fused if another call would then see a
// different value or a different order of writes. A kernel that `access` does not know counts as reading and writing all of
// its arguments.
std::size_t fuse_activations(Graph& graph, const CallAccess& access, std::size_t split);
std::size_t fuse_residuals(Graph& graph, const CallAccess& access, std::size_t split);

}  // namespace mulligan
