// Passes replace several calls of a plainly written model by one fused kernel, if no other call sees the difference.
// Results are the same up to the order of rounding in the kernels. Each pass has a file that begins with the formulas
// that it rewrites. Values keep their ids, so references into a graph stay valid.
#pragma once

#include <cstddef>

#include "framework/graph/fused_kernels.h"
#include "framework/graph/graph.h"
#include "framework/graph/tape.h"

namespace mulligan {

// Passes over the forward calls on a tape, before they are differentiated: the fused call brings a rule of its
// own for the gradients.
void fuse_output_scales(Tape& tape);
void fuse_lanes(Tape& tape);

// Passes over the calls of a finished graph, forward and backward: those for which `fused` has the kernels.
// The calls before number `split` and those from it on, which may run apart, are not mixed; returns where the
// second part begins now.
std::size_t fuse_calls(Graph& graph, const FusedKernels& fused, std::size_t split = 0);

// Each of them alone, for kernels that read and write as `access` says. Calls that would see another value
// than before, or another order of writes, keep their neighbours from being fused; a kernel that `access` does
// not know counts as reading and writing all of its arguments.
std::size_t fuse_activations(Graph& graph, const CallAccess& access, std::size_t split);
std::size_t fuse_residuals(Graph& graph, const CallAccess& access, std::size_t split);

}  // namespace mulligan
