// Initial values of the parameters.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/config/model_config.h"
#include "framework/model/parameter_values.h"
#include "framework/model/parameters.h"

namespace mulligan {

// The initial value of one parameter, f32 in its own shape. A pure function of (seed, name, spec) for any number of ranks or
// threads.
std::vector<float> initial_values(const ParameterSpec& parameter, std::uint64_t seed);
// The same for several parameters, in their order, by `threads` threads (0: one for each core).
std::vector<std::vector<float>> initial_values(std::span<const ParameterSpec> parameters, std::uint64_t seed,
                                               int threads);

// The first row that matches a parameter, or a matrix of a bank, sets its initial values. Throws config_error if a row is the
// first one of no parameter. Also throws if a row asks for `signs` of a parameter without a layer, or without whole heads of
// channels.
void apply_initial_rows(const ModelConfig& model, std::span<const InitialValuesRow> rows,
                        std::vector<ParameterLayout>& layouts);

}  // namespace mulligan
