// [run] determinism: what the host does about it, and which backends keep it.
//
// Host: gradients and losses of a step are added in a tree under "world" (step/gradient_tree.h); everything else
// on the host has one order always. Backends are told by their keys `deterministic` ("run" and above) and
// `batch_invariant` ("batch" and above), and promise what they then hold (mlg_determinism).
#pragma once

#include <string_view>

#include "framework/config/run_config.h"
#include "framework/plugin/backend.h"

namespace mulligan {

// What a backend promises, in the words of `run.determinism`: "off" where it promises nothing.
std::string_view promise_name(mlg_determinism promise);

// Throws config_error where [run] determinism asks for more than the backend, with the kernels it has now,
// promises. A backend that computes nothing has no rows, so that a promise of repetitions is enough there.
// "world" is about the order of the ranks' gradients: it needs a backend that repeats, no more.
void require_determinism(const RunConfig& config, const Backend& backend);

}  // namespace mulligan
