// Initial values of the parameters.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/model/parameters.h"

namespace mulligan {

// The initial value of one parameter, f32 in its own shape. A pure function of (seed, name, spec) for any number of ranks or
// threads.
std::vector<float> initial_values(const ParameterSpec& parameter, std::uint64_t seed);
// The same for several parameters, in their order, by `threads` threads (0: one for each core).
std::vector<std::vector<float>> initial_values(std::span<const ParameterSpec> parameters, std::uint64_t seed,
                                               int threads);

}  // namespace mulligan
